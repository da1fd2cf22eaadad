"""A model as judge of the steps of a reasoning about MedThinkVQA cases, with verdicts of others beside it.

A file of steps holds records of the benchmark in which its makers' scripts wrote the steps and their judge's
verdicts, or lines of the case's number, the steps, and verdicts of people. The judge sees what the judge of
the makers sees, title, discussion and captions among it, and replies in their form; the words of the prompt
are this project's.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import ConfigDict, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.fence import fenced
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.case import Case
from cardiolens.benchmarks.medthinkvqa import cases, records
from cardiolens.benchmarks.record_files import rows_of
from cardiolens.config.base import Spec, describe
from cardiolens.protocol.prompts.question import TextRequest
from cardiolens.storage.schemas import FRAME

MOST_STEPS = 15  # of a case
PublishedError = Literal[
    "Reasoning Err", "Image Understanding Err", "Clinical Scenario Err", "Medical Knowledge Err"
]
PUBLISHED_ERRORS: tuple[str, ...] = get_args(PublishedError)  # as verdicts name them
ERRORS = tuple(name.removesuffix(" Err") for name in PUBLISHED_ERRORS)
_STEPS, _VERDICTS = "explanation_steps", "explanation_steps_checks"  # of the makers' records
_FILLED_IN = (  # explanations with which their scripts mark steps that got no verdict, as not factual
    "No valid structured verdict was returned.",
    "Missing verdict; treated as unsupported.",
)
_NONE = "not given"


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """The verdict of the judge or of a person on one step."""

    is_factual: bool
    is_critical: bool
    error_types: tuple[str, ...] | None  # of ERRORS; None: not factual, and what is wrong was not said


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The steps of one reader about one case, with the verdicts of others if there are any."""

    line: int  # of its file
    case: int  # line of the case in the data, from 1
    steps: tuple[str, ...]
    given: tuple[StepVerdict | None, ...] | None  # by step; None: that step got no verdict
    by: Literal["people", "their judge"] = "people"  # who gave these verdicts


class _Strict(Spec):
    model_config = ConfigDict(strict=True)


class _Verdict(_Strict):
    """A verdict in the form of the makers' judge."""

    is_factual: bool
    is_critical: bool
    explanation: str = ""
    error_types: list[PublishedError] | None = None

    @property
    def verdict(self) -> StepVerdict:
        """The verdict; types of a step that is factual do not count."""
        named = self.error_types or ()
        types = tuple(own for own, name in zip(ERRORS, PUBLISHED_ERRORS, strict=True) if name in named)
        return StepVerdict(self.is_factual, self.is_critical, () if self.is_factual else types or None)


class _Verdicts(_Strict):
    verdicts: list[_Verdict]


def read_reasoning(path: Path, source: Source) -> list[Reasoning]:
    """Read a file of steps; InputError names place and field, the value, the legal values, and the remedy."""
    numbers, read = _numbers(source), list[Reasoning]()
    for line, row in enumerate(rows_of(path), start=1):
        try:
            if row.error:
                raise InputError(row.error)
            if row.record.get(_STEPS) != []:  # a record without a step is left out
                read.append(_reasoning(row.record, line, numbers))
        except InputError as error:
            raise InputError(f"{row.place}: {error}; correct the file, or leave the record out") from None
    if not read:
        raise InputError(f"{path}: no record has a step; give a file with {_STEPS} filled in")
    return read


def _numbers(source: Source) -> dict[object, list[int]]:
    """Return the line numbers of the cases by number, and by title and history."""
    numbers: dict[object, list[int]] = {}
    for number, record in records(source):
        numbers[number] = [number]
        numbers.setdefault(_key(record), []).append(number)
    return numbers


def _key(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return title and history, without regard to case and white space."""
    history = record.get("CLINICAL_HISTORY") or record.get("clinical_history")
    title, words = (" ".join(str(text or "").split()).casefold() for text in (record.get("title"), history))
    return title, words


def _reasoning(entry: Mapping[str, Any], line: int, numbers: Mapping[object, list[int]]) -> Reasoning:
    if _STEPS in entry:
        match = numbers.get(_key(entry), [])
        if len(match) != 1:
            many = f"is that of lines {', '.join(map(str, match))}" if match else "is that of no case"
            raise InputError(
                f"title {str(entry.get('title'))[:60]!r} with its CLINICAL_HISTORY {many} of the data; "
                "expected that of one case of this split"
            )
        steps = _steps(_STEPS, entry[_STEPS])
        verdicts = _given(_VERDICTS, entry.get(_VERDICTS), len(steps))
        return Reasoning(line, match[0], steps, verdicts, "their judge")
    if unknown := sorted(entry.keys() - {"case", "steps", "people"}):
        raise InputError(f"{unknown[0]} is unknown; legal are case, steps and people")
    case = entry.get("case")
    if type(case) is not int or case not in numbers:
        most = max(number for number in numbers if isinstance(number, int))
        raise InputError(f"case is {case!r}; expected the line of a case, 1 to {most}")
    steps = _steps("steps", entry.get("steps"))
    return Reasoning(line, case, steps, _given("people", entry.get("people"), len(steps)))


def _steps(name: str, value: object) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else []
    legal = all(isinstance(text, str) and text.strip() and FRAME not in text for text in texts)
    if not 1 <= len(texts) <= MOST_STEPS or not legal:
        raise InputError(f"{name} is no list of 1 to {MOST_STEPS} texts")
    return tuple(texts)


def _given(name: str, entries: object, count: int) -> tuple[StepVerdict | None, ...] | None:
    """Parse verdicts, one per step; None where there are none, or where the makers' scripts filled one in."""
    if entries is None:
        return None
    if not isinstance(entries, list) or len(entries) != count:
        raise InputError(f"{name} is no list of one verdict for each of the {count} steps")
    verdicts = []
    for at, entry in enumerate(entries, start=1):
        try:
            verdict = _Verdict.model_validate(entry)
        except ValidationError as error:
            raise InputError(f"{name}, step {at}: {describe(error)}") from None
        filled_in = not verdict.is_factual and verdict.explanation in _FILLED_IN
        verdicts.append(None if filled_in else verdict.verdict)
    return tuple(verdicts)


_SYSTEM = (
    "You judge the reasoning of somebody about a case of radiology. You know the case and its diagnosis. "
    "You judge each step by itself, and reply with one JSON object and no other text."
)
_ASKED = """{notice}

Title:
{title}

History:
{history}

Imaging findings:
{findings}

Discussion:
{discussion}

Final diagnosis:
{diagnosis}

Captions of the images:
{captions}

Steps of the reasoning:
{steps}

Reply with {{"verdicts": [{{"is_factual": ..., "is_critical": ..., "explanation": ..., \
"error_types": ...}}]}}, one entry for each of the {count} steps, in their order.
- is_factual: false only where the step is plainly wrong, contradicts the case, or nothing supports it; true \
where the case states it, implies it, or makes it medically reasonable.
- is_critical: true where the final diagnosis cannot be reached without the step.
- explanation: the reason, in at most 300 characters.
- error_types: where is_factual is false, a list of what is wrong, of {errors}; else null.
"""
_TYPES = {
    "type": "array",
    "minItems": 1,
    "maxItems": len(PUBLISHED_ERRORS),
    "items": {"enum": list(PUBLISHED_ERRORS)},
}
_ENTRY: dict[str, object] = {
    "is_factual": {"type": "boolean"},
    "is_critical": {"type": "boolean"},
    "explanation": {"type": "string", "minLength": 2, "maxLength": 300},
    "error_types": {"anyOf": [_TYPES, {"type": "null"}]},
}


def requests(source: Source, reasonings: Sequence[Reasoning]) -> list[TextRequest]:
    """Return the requests to the judge, one for each line of steps."""
    numbers = {reasoning.case for reasoning in reasonings}
    texts = {number: case_texts(record, case) for number, (record, case) in cases(source, numbers).items()}
    return [
        TextRequest(
            f"line-{reasoning.line:06d}",
            "step3",
            _SYSTEM,
            prompt_of(texts[reasoning.case], reasoning.steps),
            _schema(len(reasoning.steps)),
        )
        for reasoning in reasonings
    ]


def _schema(count: int) -> str:
    closed = {"additionalProperties": False}
    entry = {"type": "object", "properties": _ENTRY, "required": list(_ENTRY)} | closed
    listed = {"type": "array", "minItems": count, "maxItems": count, "items": entry}
    reply = {"type": "object", "properties": {"verdicts": listed}, "required": ["verdicts"]} | closed
    return json.dumps(reply)


def prompt_of(case: Mapping[str, str], steps: Sequence[str]) -> str:
    """Return the user message; each step is on one line, so that none can pass for two."""
    listed = "\n".join(f"{number}. {' '.join(step.split())}" for number, step in enumerate(steps, start=1))
    fence = fenced({**case, "steps": listed})
    errors = ", ".join(PUBLISHED_ERRORS)
    return _ASKED.format(notice=fence.notice, **fence.blocks, count=len(steps), errors=errors)


def case_texts(record: Mapping[str, Any], case: Case) -> dict[str, str]:
    """Return the texts of a case that a judge is shown, by name; captions without a second of one wording."""
    captions = dict.fromkeys(" ".join(image.caption.split()) for image in case.images if image.caption)
    (question,) = case.questions
    texts = {
        "title": str(record.get("title") or _NONE),
        "history": case.history,
        "findings": case.findings or _NONE,
        "discussion": str(record.get("discussion") or _NONE),
        "diagnosis": str(record.get("correct_answer_text") or question.options[question.answer[0]]),
        "captions": "\n".join(f"- {caption}" for caption in captions) or _NONE,
    }
    return {name: text.replace(FRAME, " ") for name, text in texts.items()}


def read_verdicts(reply: str | None, count: int) -> tuple[StepVerdict, ...] | None:
    """Parse a reply into one verdict per step; None if it does not match the schema."""
    try:
        read = _Verdicts.model_validate(parse_json(reply or "")).verdicts
    except ValueError:
        return None
    is_whole = len(read) == count and all(step.model_fields_set == _ENTRY.keys() for step in read)
    return tuple(step.verdict for step in read) if is_whole else None


def judged_line(reasoning: Reasoning, verdicts: tuple[StepVerdict, ...] | None) -> str:
    """Return a line of the verdicts file; `judge` is null if the model's reply was invalid."""
    judge = None if verdicts is None else [asdict(verdict) for verdict in verdicts]
    line = {"line": reasoning.line, "case": reasoning.case, "judge": judge}
    return json.dumps(line, ensure_ascii=False) + "\n"
