"""A model as judge of case discussions (protocol 16.17): its prompt, and the validation of its replies.

Each sentence is judged for correctness, and the whole for its value to learners. The words of the prompt, the
rule for sentences and the meaning of the values are ours; those of the benchmark are not public.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.fence import fenced
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.judges.reasoning import lines_of
from cardiolens.benchmarks.judges.reasoning_judge import case_texts
from cardiolens.benchmarks.medthinkvqa import cases
from cardiolens.protocol.prompts.case_prompts import MOST_VALUE, VALUES, sections_of, sentences_of
from cardiolens.protocol.prompts.text_request import TextRequest
from cardiolens.storage.schemas import FRAME

MOST_SENTENCES = 120  # of a discussion that is judged

_SYSTEM = (
    "You judge a discussion of a case of radiology that was written for students. You know the case, its "
    "diagnosis, and the discussion by its authors. You reply with one JSON object and no other text."
)
_ASKED = """{notice}

Title:
{title}

History:
{history}

Imaging findings:
{findings}

Discussion by the authors:
{discussion}

Final diagnosis:
{diagnosis}

Captions of the images:
{captions}

Sentences of the discussion that you judge, each with its section:
{sentences}

Reply with {{"sentences": [...], "values": {{...}}}}.
- sentences: one entry for each of the {count} sentences, in their order: true where all that the sentence \
states is right, of this case and of medicine, else false.
- values: what the discussion is worth to students, as 0 (missing or wrong), 1 (in part) or 2 (in full), for \
each of {values}.
"""


@dataclass(frozen=True, slots=True)
class Discussion:
    """A discussion of one case, split into sentences with their sections."""

    line: int  # of its file
    case: int  # line of the case in the data, from 1
    sentences: tuple[tuple[str, str], ...]  # section, sentence; empty: it cannot be judged

    @staticmethod
    def of(line: int, case: int, text: str) -> "Discussion":
        """Split a discussion; it cannot be judged without its six sections, or if it is too long."""
        sections = sections_of(text) or {}
        split = [(name, sentence) for name, part in sections.items() for sentence in sentences_of(part)]
        return Discussion(line, case, tuple(split) if len(split) <= MOST_SENTENCES else ())


@dataclass(frozen=True, slots=True)
class Rating:
    """The judge's verdict on a discussion."""

    correct: tuple[bool, ...]  # by sentence
    values: Mapping[str, int]  # by name, 0 to MOST_VALUE


def read_discussions(path: Path, n_cases: int) -> list[Discussion]:
    """Read a file of discussions; InputError names line and field, the legal values, and the remedy."""
    discussions = []
    for line, (where, entry) in enumerate(lines_of(path, "discussions"), start=1):
        case, text = entry.get("case"), entry.get("discussion")
        if type(case) is not int or not 1 <= case <= n_cases:
            raise InputError(
                f"{where}: case is {case!r}; expected the line of a case, 1 to {n_cases}; correct the line"
            )
        if not isinstance(text, str) or entry.keys() != {"case", "discussion"}:
            names = ", ".join(sorted(entry))
            raise InputError(
                f"{where}: has {names}; expected case and discussion, which is a text; correct the line"
            )
        discussions.append(Discussion.of(line, case, text))
    return discussions


def rating_requests(source: Source, discussions: Sequence[Discussion]) -> list[TextRequest]:
    """Return the requests to the judge, one for each discussion that can be judged."""
    asked = {discussion.case for discussion in discussions}
    texts = {
        number: case_texts(record, case, "published")
        for number, (record, case) in cases(source, asked).items()
    }
    return [
        TextRequest(
            f"line-{discussion.line:06d}",
            "discussion",
            _SYSTEM,
            rating_prompt(texts[discussion.case], discussion),
            _schema(len(discussion.sentences)),
        )
        for discussion in discussions
        if discussion.sentences
    ]


def rating_prompt(case: Mapping[str, str], discussion: Discussion) -> str:
    """Return the user message; each sentence is on one line, so that none can pass for two."""
    listed = "\n".join(
        f"{number}. ({section}) {sentence.replace(FRAME, ' ')}"
        for number, (section, sentence) in enumerate(discussion.sentences, start=1)
    )
    shown = fenced({**case, "sentences": listed})
    return _ASKED.format(
        notice=shown.notice, **shown.blocks, count=len(discussion.sentences), values=", ".join(VALUES)
    )


def _schema(count: int) -> str:
    value = {"enum": list(range(MOST_VALUE + 1))}
    properties = {
        "sentences": {"type": "array", "minItems": count, "maxItems": count, "items": {"type": "boolean"}},
        "values": {
            "type": "object",
            "properties": dict.fromkeys(VALUES, value),
            "required": list(VALUES),
            "additionalProperties": False,
        },
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return json.dumps(schema | {"additionalProperties": False})


def read_rating(reply: str | None, discussion: Discussion) -> Rating | None:
    """Parse a reply; None if it does not match the schema."""
    try:
        read = parse_json(reply or "")
    except ValueError:
        return None
    if not isinstance(read, dict) or read.keys() != {"sentences", "values"}:
        return None
    correct, values = read["sentences"], read["values"]
    reply_text = isinstance(correct, list) and len(correct) == len(discussion.sentences)
    if not reply_text or not all(isinstance(rating, bool) for rating in correct):
        return None
    if (
        not isinstance(values, dict)
        or values.keys() != set(VALUES)
        or not all(map(_is_value, values.values()))
    ):
        return None
    return Rating(tuple(correct), {name: values[name] for name in VALUES})


def _is_value(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_VALUE


def rated_line(discussion: Discussion, rating: Rating | None) -> str:
    """Return a line of the ratings file; `judge` is null if there is no legal reply."""
    judge: dict[str, Any] | None = None
    if rating is not None:
        sentences = [
            {"section": section, "sentence": sentence, "is_correct": correct}
            for (section, sentence), correct in zip(discussion.sentences, rating.correct, strict=True)
        ]
        judge = {"sentences": sentences, "values": dict(rating.values)}
    line = {"line": discussion.line, "case": discussion.case, "judge": judge}
    return json.dumps(line, ensure_ascii=False) + "\n"
