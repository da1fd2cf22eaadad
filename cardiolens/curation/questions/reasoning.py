"""A model as judge of reasoning about MedThinkVQA cases: its prompts, and the validation of its replies.

The steps are split beforehand, so that the model and people judge the same ones. Unlike a reader, the judge
sees the answer and the discussion of the case.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.fence import fenced
from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.curation.questions.model_extraction import TextRequest
from cardiolens.protocol.medthinkvqa.case import LETTERS, read_case
from cardiolens.protocol.medthinkvqa.files import Source, embeds, records
from cardiolens.storage.schemas import FRAME

ERRORS = ("Reasoning", "Image Understanding", "Clinical Scenario", "Medical Knowledge")
MOST_STEPS = 15  # of a case (protocol 12)

_SYSTEM = (
    "You judge the reasoning of somebody who was shown a case, its images and five options. You know the "
    "answer. You judge each step by itself, and reply with one JSON object and no other text."
)
_ASKED = """{notice}

History:
{history}

Options:
{options}

Answer:
{answer}

Imaging findings:
{findings}

Discussion:
{discussion}

Steps of the reasoning:
{steps}

Reply with {{"steps": [{{"is_factual": ..., "is_critical": ..., "error_types": [...]}}]}}, one entry for \
each of the {count} steps, in their order.
- is_factual: true where all that the step states is right for this case.
- is_critical: true where the choice among the options rests on the step.
- error_types: what is wrong with it, of {errors}; empty where it is factual.
"""
_KEYS = ("is_factual", "is_critical", "error_types")
_LEGAL = f"is_factual and is_critical (true or false) and error_types (a list of {', '.join(ERRORS)})"


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """The verdict of the judge or of a person on one step."""

    is_factual: bool
    is_critical: bool
    error_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The steps of one reader about one case, with people's verdicts if there are any."""

    line: int  # of its file
    case: int  # line of the case in the data, from 1
    steps: tuple[str, ...]
    people: tuple[StepVerdict, ...] | None


def read_reasoning(path: Path, n_cases: int) -> list[Reasoning]:
    """Read a file of steps; InputError names line and field, the legal values, and the remedy."""
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeError) as error:
        raise InputError(f"steps={path}: cannot be read as UTF-8 text ({error})") from None
    reasonings = []
    for number, line in enumerate(lines, start=1):
        try:
            record = parse_json(line)
            reasonings.append(_reasoning(record if isinstance(record, dict) else {}, number, n_cases))
        except (InputError, ValueError) as error:
            raise InputError(f"{path}:{number}: {error}; correct the line") from None
    if not reasonings:
        raise InputError(f"steps={path}: has no line; give one object with case and steps a line")
    return reasonings


def _reasoning(record: Mapping[str, Any], line: int, n_cases: int) -> Reasoning:
    if unknown := sorted(record.keys() - {"case", "steps", "people"}):
        raise InputError(f"{unknown[0]} is unknown; legal are case, steps and people")
    case, steps, people = (record.get(name) for name in ("case", "steps", "people"))
    if type(case) is not int or not 1 <= case <= n_cases:
        raise InputError(f"case is {case!r}; expected the line of a case, 1 to {n_cases}")
    texts = steps if isinstance(steps, list) else []
    if not 1 <= len(texts) <= MOST_STEPS or not all(_is_step(text) for text in texts):
        raise InputError(f"steps is no list of 1 to {MOST_STEPS} texts")
    verdicts = None if people is None else _verdicts(people, len(texts))
    if people is not None and verdicts is None:
        raise InputError(f"people is not one object for each of the {len(texts)} steps with {_LEGAL}")
    return Reasoning(line, case, tuple(texts), verdicts)


def _is_step(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip()) and FRAME not in text


def _verdicts(entries: object, count: int) -> tuple[StepVerdict, ...] | None:
    """Parse `count` verdicts; None if the entries are anything else."""
    if not isinstance(entries, list) or len(entries) != count:
        return None
    verdicts = [_verdict(entry) for entry in entries]
    complete = tuple(verdict for verdict in verdicts if verdict is not None)
    return complete if len(complete) == count else None


def _verdict(entry: object) -> StepVerdict | None:
    if not isinstance(entry, dict) or entry.keys() != set(_KEYS):
        return None
    factual, critical, errors = (entry[name] for name in _KEYS)
    if not isinstance(factual, bool) or not isinstance(critical, bool) or not isinstance(errors, list):
        return None
    if not all(error in ERRORS for error in errors):
        return None
    return StepVerdict(factual, critical, tuple(error for error in ERRORS if error in errors))


def requests(source: Source, reasonings: Sequence[Reasoning]) -> list[TextRequest]:
    """Return the requests to the judge, one for each line of steps."""
    cases = {reasoning.case for reasoning in reasonings}
    embedded = embeds(source)
    prompts = {
        number: _case(record, number, embedded=embedded)
        for number, record in records(source)
        if number in cases
    }
    return [
        TextRequest(
            f"line-{reasoning.line:06d}",
            "step3",
            _SYSTEM,
            _prompt(prompts[reasoning.case], reasoning.steps),
            _schema(len(reasoning.steps)),
        )
        for reasoning in reasonings
    ]


def _prompt(case: Mapping[str, str], steps: Sequence[str]) -> str:
    """Return the user message; each step is on one line, so that none can pass for two."""
    listed = "\n".join(f"{number}. {' '.join(step.split())}" for number, step in enumerate(steps, start=1))
    shown = fenced({**case, "steps": listed})
    return _ASKED.format(notice=shown.notice, **shown.blocks, count=len(steps), errors=", ".join(ERRORS))


def _case(record: Mapping[str, Any], number: int, *, embedded: bool) -> dict[str, str]:
    case = read_case(record, number, embeds=embedded)
    case_fields = {
        "history": case.history,
        "options": "\n".join(
            f"{key}. {' '.join(text.split())}" for key, text in zip(LETTERS, case.options, strict=True)
        ),
        "answer": case.answer,
        "findings": case.findings or "not given",
        "discussion": str(record.get("discussion") or "not given"),
    }
    return {name: text.replace(FRAME, " ") for name, text in case_fields.items()}


def _schema(count: int) -> str:
    entry = {
        "type": "object",
        "properties": {
            "is_factual": {"type": "boolean"},
            "is_critical": {"type": "boolean"},
            "error_types": {"type": "array", "maxItems": len(ERRORS), "items": {"enum": list(ERRORS)}},
        },
        "required": list(_KEYS),
        "additionalProperties": False,
    }
    steps = {"type": "array", "minItems": count, "maxItems": count, "items": entry}
    reply_schema = {"type": "object", "properties": {"steps": steps}, "required": ["steps"]}
    return json.dumps(reply_schema | {"additionalProperties": False})


def read_verdicts(reply: str | None, count: int) -> tuple[StepVerdict, ...] | None:
    """Parse a reply into one verdict per step; None if it does not match the schema."""
    try:
        read = parse_json(reply or "")
    except ValueError:
        return None
    return _verdicts(read["steps"], count) if isinstance(read, dict) and read.keys() == {"steps"} else None


def judged_line(reasoning: Reasoning, verdicts: tuple[StepVerdict, ...] | None) -> str:
    """Return a line of the verdicts file; `judge` is null if the model's reply was invalid."""
    judge = None if verdicts is None else [asdict(verdict) for verdict in verdicts]
    return (
        json.dumps({"line": reasoning.line, "case": reasoning.case, "judge": judge}, ensure_ascii=False)
        + "\n"
    )
