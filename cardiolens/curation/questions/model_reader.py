"""Extraction by a language model: its prompts, and what is believed of its replies.

There is one request for each report and group of fields. The model does not see what the rules extracted. A
reply costs its report's group at most: whatever it holds, the reading of it goes on.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cardiolens.base.digest import digest_of
from cardiolens.base.fence import fenced
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.asking.ask_texts import ask
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.model_guards import Guards
from cardiolens.curation.questions.report_files import Rejects, reject
from cardiolens.curation.questions.stage_files import Record
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.protocol.prompts.question import TextRequest
from cardiolens.protocol.tasks.catalogue import OPEN, Catalogue, Subtask

SYSTEM = (
    "You read reports of cardiac magnetic resonance imaging and fill in a form. You add nothing, infer "
    "nothing, and reply with one JSON object and no other text."
)
# The report stands last, so that all before it is the same text for all reports, and is cached.
_ASKED = """{fields_notice}

Fields of the form, with their values:
{fields}

Fill in every field with a quote and a value.
- quote: the words of the report that state the finding, copied character by character, at most {longest}.
- value: one of the field's values, word for word; where a field takes a list, all that the report states.
- A field that the report does not state for this examination has the quote "" and the value "{not_stated}"
  (an empty list where it takes a list). Not mentioned is not normal. What is doubted, asked, or of an
  earlier examination is not stated.

Example of a report: "Spleen enlarged, 15 cm. Iron load of the liver was not assessed."
Example of a reply: {{"spleen": {{"quote": "Spleen enlarged", "value": "Enlarged"}}, \
"liver_iron": {{"quote": "", "value": "{not_stated}"}}}}

{notice}

{report}
"""
NOT_STATED = "not stated"
LONGEST_QUOTE = 200  # characters
_MOST_REPLY = 100_000  # characters of a reply that is read
_MOST_FIELDS = 10  # of a group


@dataclass(frozen=True, slots=True)
class Group:
    """The fields of one request."""

    name: str
    sequence: str
    fields: Mapping[str, Subtask]  # by name

    def request(self, record: Mapping[str, Any]) -> TextRequest:
        """Return the request on one report."""
        return TextRequest(record["report_id"], self.name, SYSTEM, self.prompt(record["text"]), self.schema)

    def prompt(self, text: str) -> str:
        """Return the user message for one report."""
        listed = fenced(
            {"fields": "\n".join(_listed(name, subtask) for name, subtask in self.fields.items())}
        )
        shown = fenced({"report": text})
        return _ASKED.format(
            fields_notice=listed.notice,
            fields=listed.blocks["fields"],
            longest=LONGEST_QUOTE,
            not_stated=NOT_STATED,
            notice=shown.notice,
            report=shown.blocks["report"],
        )

    @property
    def schema(self) -> str:
        """Return the JSON schema of a reply: all fields, and the quote before the value."""
        entries = {name: _entry_schema(subtask) for name, subtask in self.fields.items()}
        return json.dumps(_object(entries))


def _listed(name: str, subtask: Subtask) -> str:
    values = "; ".join(json.dumps(option.text) for option in subtask.options)
    kind = "a list of" if subtask.answer_type == "multi" else "one of"
    return f"- {name}: {' '.join(subtask.question.split())} Value: {kind} {values}"


def _entry_schema(subtask: Subtask) -> dict[str, Any]:
    texts = [option.text for option in subtask.options]
    value: dict[str, Any] = {"enum": [*texts, NOT_STATED]}
    if subtask.answer_type == "multi":
        value = {"type": "array", "maxItems": len(texts), "items": {"enum": texts}}
    return _object({"quote": {"type": "string", "maxLength": LONGEST_QUOTE}, "value": value})


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def groups(catalogue: Catalogue) -> Iterator[Group]:
    """Yield the groups of fields, in catalogue order: those of one sequence, or a part of them."""
    asked = [subtask for subtask in catalogue.subtasks.values() if subtask.answer_type not in OPEN]
    for sequence in dict.fromkeys(subtask.sequence for subtask in asked):
        fields = [subtask for subtask in asked if subtask.sequence == sequence]
        for start in range(0, len(fields), _MOST_FIELDS):
            name = sequence if len(fields) <= _MOST_FIELDS else f"{sequence}-{start // _MOST_FIELDS + 1}"
            part = fields[start : start + _MOST_FIELDS]
            yield Group(name, sequence, {subtask.field: subtask for subtask in part})


def prompts_digest(catalogue: Catalogue) -> str:
    """Return a digest of all that a model is asked on any report."""
    return digest_of([SYSTEM, *([group.prompt(""), group.schema] for group in groups(catalogue))])


@dataclass(frozen=True, slots=True)
class DroppedEntry:
    """An entry of a reply that is not believed, or a whole reply if `subtask` is None."""

    reason: str
    subtask: str | None = None


def read_with_model(
    sweep: SweepSpec, reports: Sequence[Record], catalogue: Catalogue
) -> list[tuple[list[Record], Rejects]]:
    """Return the findings of the model of a sweep, and its rejects, for each report in order.

    A missing completion is a reject.
    """
    own = list(groups(catalogue))
    replies = iter(ask(sweep, [group.request(record) for record in reports for group in own]))
    return [_read_replies(record, own, replies, catalogue) for record in reports]


def _read_replies(
    record: Mapping[str, Any], own: Sequence[Group], replies: Iterator[str | None], catalogue: Catalogue
) -> tuple[list[Record], Rejects]:
    """Return the findings and rejects of one report from the replies to its groups, in their order."""
    guards = Guards.of(record["text"], record.get("sex"), catalogue)
    items: list[Record] = []
    rejects: Rejects = []
    for group in own:
        statements, losses = read_reply(next(replies), group, guards)
        items += [one.record(number) for number, one in enumerate(statements, start=len(items) + 1)]
        rejects += [
            reject(2, loss.reason, study_id=record["study_id"], subtask=loss.subtask, part=group.name)
            for loss in losses
        ]
    return items, rejects


def read_reply(
    reply: str | None, group: Group, guards: Guards
) -> tuple[list[ReportStatement], list[DroppedEntry]]:
    """Return the findings of a reply that pass the guards, and what was dropped, field by field."""
    if reply is None:
        return [], [DroppedEntry(Reason.NO_REPLY)]
    entries = _entries(reply)
    if entries is None:
        return [], [DroppedEntry(Reason.NO_JSON)]
    statements: list[ReportStatement] = []
    losses = [DroppedEntry(Reason.NO_SUCH_OPTION) for name in entries if name not in group.fields][:1]
    for name, subtask in group.fields.items():
        found = _found(entries.get(name), subtask, guards)
        if isinstance(found, DroppedEntry):
            losses.append(found)
        else:
            statements += found
    return statements, losses


def _entries(reply: str) -> Mapping[str, Any] | None:
    """Return the fields of a reply, or None if it is no JSON object."""
    if len(reply) >= _MOST_REPLY:
        return None
    bare = re.fullmatch(r"\s*```(?:json)?\s*(.*?)\s*```\s*", reply, re.DOTALL)
    try:
        value = parse_json(bare[1] if bare else reply)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _found(entry: Any, subtask: Subtask, guards: Guards) -> list[ReportStatement] | DroppedEntry:
    """Return the statements of one field, none if it is not stated."""
    if not isinstance(entry, dict) or entry.keys() != {"quote", "value"}:
        return DroppedEntry(Reason.NO_SUCH_OPTION, subtask.id)
    quote, value = entry["quote"], entry["value"]
    if value in (NOT_STATED, [], [NOT_STATED]):
        return []
    given = value if isinstance(value, list) and subtask.answer_type == "multi" else [value]
    texts = [option.text for option in subtask.options]
    if not isinstance(quote, str) or not all(isinstance(one, str) and one in texts for one in given):
        return DroppedEntry(Reason.NO_SUCH_OPTION, subtask.id)
    values = tuple(dict.fromkeys(given))
    exclusive = {option.text for option in subtask.options if option.key in subtask.exclusive}
    if len(values) > 1 and exclusive & {*values}:
        return DroppedEntry(Reason.CONTRADICTION, subtask.id)
    passed = guards.check(quote, values, subtask)
    return DroppedEntry(passed, subtask.id) if isinstance(passed, str) else passed
