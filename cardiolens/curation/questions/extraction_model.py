"""Extraction by a language model: its prompts, and the validation of its replies.

It does not see what the rules extracted. Every quote must occur in the report word for word.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cardiolens.base.fence import fenced
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.house_sentences import report_sentences
from cardiolens.curation.questions.statement import CERTAINTIES, ReportStatement
from cardiolens.curation.questions.uncertainty import doubt_of
from cardiolens.protocol.tasks.catalogue import OPEN, Catalogue, Subtask
from cardiolens.protocol.tasks.house_style import HouseStyle
from cardiolens.report_text.sections import Sentence, sentence_at

SYSTEM = (
    "You read reports of cardiac magnetic resonance imaging and list what they state, field by field. "
    "You add nothing, infer nothing, and reply with one JSON object and no other text."
)
_ASKED = """{notice}

Fields and their values:
{fields}

Reply with {{"findings": [{{"field": ..., "value": ..., "quote": ..., "certainty": ...}}]}}.
- One entry for each value that the report states. A field with several values has several entries.
- A field that the report does not mention has no entry. Not mentioned is not normal.
- value: one of the field's values, word for word; null where the report speaks of the field and tells none.
- quote: the shortest stretch of the report that states it, copied character by character.
- certainty: "certain"; "uncertain" where the report doubts it; "historical" where it is of the past or of an
  earlier examination; "hypothetical" where it is asked for, such as in an indication.
- A place or a pattern belongs to a field only if the report gives it for the finding of that field.

Report:
{text}
"""
_MOST_FINDINGS = 60  # of one reply
_KEYS = frozenset({"field", "value", "quote", "certainty"})


@dataclass(frozen=True, slots=True)
class Part:
    """The subtasks of one request: those of one sequence, or of the whole patient."""

    name: str
    subtasks: tuple[Subtask, ...]
    house: HouseStyle  # whose headings open sections

    def prompt(self, text: str) -> str:
        """Return the user message for one report."""
        lines = [
            f"- {subtask.id}: {' '.join(subtask.question.split())} "
            f"Values: {'; '.join(json.dumps(option.text) for option in subtask.options)}"
            for subtask in self.subtasks
        ]
        shown = fenced({"fields": "\n".join(lines), "report": text})
        return _ASKED.format(notice=shown.notice, fields=shown.blocks["fields"], text=shown.blocks["report"])

    @property
    def schema(self) -> str:
        """Return the JSON schema of a reply."""
        entries = [
            {
                "type": "object",
                "properties": {
                    "field": {"enum": [subtask.id]},
                    "value": {"enum": [*(option.text for option in subtask.options), None]},
                    "quote": {"type": "string"},
                    "certainty": {"enum": list(CERTAINTIES)},
                },
                "required": ["field", "value", "quote", "certainty"],
                "additionalProperties": False,
            }
            for subtask in self.subtasks
        ]
        findings = {"type": "array", "maxItems": _MOST_FINDINGS, "items": {"anyOf": entries}}
        reply_schema = {
            "type": "object",
            "properties": {"findings": findings},
            "required": ["findings"],
            "additionalProperties": False,
        }
        return json.dumps(reply_schema)


def parts(catalogue: Catalogue) -> Iterator[Part]:
    """Yield the parts that are requested for a report, in catalogue order."""
    choice_subtasks = [subtask for subtask in catalogue.subtasks.values() if subtask.answer_type not in OPEN]
    for sequence in dict.fromkeys(subtask.sequence for subtask in choice_subtasks):
        yield Part(
            sequence,
            tuple(subtask for subtask in choice_subtasks if subtask.sequence == sequence),
            catalogue.house,
        )


@dataclass(frozen=True, slots=True)
class DroppedEntry:
    """A rejected finding, or a rejected reply if `subtask` is None."""

    reason: str
    subtask: str | None = None


def read_reply(text: str, reply: str | None, part: Part) -> tuple[list[ReportStatement], list[DroppedEntry]]:
    """Return the findings of a reply whose quotes occur in the report, and the rejected ones.

    A subtask with any rejected finding gets no answer, as its other findings may be incomplete.
    """
    if reply is None:
        return [], [DroppedEntry(Reason.NO_REPLY)]
    entries = _entries(reply)
    if entries is None:
        return [], [DroppedEntry(Reason.NO_JSON)]
    pieces = report_sentences(text, part.house)
    by_id = {subtask.id: subtask for subtask in part.subtasks}
    statements: list[ReportStatement] = []
    losses: list[DroppedEntry] = []
    for entry in entries:
        statement = _found(text, pieces, entry, by_id)
        if isinstance(statement, DroppedEntry):
            losses.append(statement)
        else:
            statements.append(statement)
    broken = {loss.subtask: loss.reason for loss in losses if loss.subtask}
    return [
        replace(statement, doubt=statement.doubt or broken.get(statement.subtask)) for statement in statements
    ], losses


def _entries(reply: str) -> Sequence[Any] | None:
    """Return the list of findings of a reply, or None if it is not exactly the requested JSON."""
    fenced = re.fullmatch(r"\s*```(?:json)?\s*(.*?)\s*```\s*", reply, re.DOTALL)
    try:
        value = parse_json(fenced[1] if fenced else reply)
    except ValueError:
        return None
    if not isinstance(value, dict) or set(value) != {"findings"} or not isinstance(value["findings"], list):
        return None
    return value["findings"]


def _found(
    text: str, pieces: Sequence[Sentence], entry: Any, by_id: Mapping[str, Subtask]
) -> ReportStatement | DroppedEntry:
    if not isinstance(entry, dict) or entry.keys() != _KEYS or entry["field"] not in by_id:
        return DroppedEntry(Reason.NO_SUCH_OPTION)
    subtask = by_id[entry["field"]]
    value, quote, certainty = entry["value"], entry["quote"], entry["certainty"]
    legal = value is None or value in [option.text for option in subtask.options]
    if not legal or certainty not in CERTAINTIES or not isinstance(quote, str):
        return DroppedEntry(Reason.NO_SUCH_OPTION, subtask.id)
    places = [match.start() for match in re.finditer(re.escape(quote), text)] if quote.strip() else []
    places = [at for at in places if _whole_words(text, at, at + len(quote))]
    if not places:
        return DroppedEntry(Reason.NOT_QUOTED, subtask.id)
    spoken = [at for at in places if sentence_at(pieces, at).section != "silent"]
    if not spoken and certainty == "certain":
        return DroppedEntry(Reason.SILENT_SECTION, subtask.id)
    start = (spoken or places)[0]
    sentence = sentence_at(pieces, start)
    polarity = (
        "negated" if re.search(r"\b(no|not|without|absent|none)\b", quote, re.IGNORECASE) else "affirmed"
    )
    statement = ReportStatement(
        subtask.id, value, start, start + len(quote), quote, sentence.section, polarity, certainty, "model"
    )
    return replace(statement, doubt=doubt_of(statement, subtask, text[sentence.start : sentence.end])).check(
        text
    )


def _whole_words(text: str, start: int, end: int) -> bool:
    """Return whether a span starts and ends at word boundaries."""
    cut_before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
    cut_behind = end < len(text) and text[end - 1].isalnum() and text[end].isalnum()
    return not cut_before and not cut_behind
