"""A model as judge of reasoning about MedThinkVQA cases: its prompts, and the validation of its replies.

Unlike a reader, the judge sees the answer and the discussion of the case. In the published form it sees what
the judge of MedThinkVQA's makers sees, title and captions among it, and replies in their form; the words of
both prompts are ours.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.fence import fenced
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.case import Case
from cardiolens.benchmarks.judges.reasoning import Reasoning
from cardiolens.benchmarks.judges.step_verdict import (
    ERRORS,
    PUBLISHED_ERRORS,
    Form,
    StepVerdict,
    step_verdict,
)
from cardiolens.benchmarks.medthinkvqa import LETTERS, cases
from cardiolens.protocol.prompts.text_request import TextRequest
from cardiolens.storage.schemas import FRAME

_NONE = "not given"


@dataclass(frozen=True, slots=True)
class _JudgeForm:
    """What a judge is told and asked in one form."""

    system: str
    asked: str  # with places for notice, texts, count and errors
    errors: tuple[str, ...]
    reply: str  # the one key of a reply
    entry: Mapping[str, Any]  # schema of a verdict


_OWN = _JudgeForm(
    system=(
        "You judge the reasoning of somebody who was shown a case, its images and five options. You know the "
        "answer. You judge each step by itself, and reply with one JSON object and no other text."
    ),
    asked="""{notice}

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
""",
    errors=ERRORS,
    reply="steps",
    entry={
        "is_factual": {"type": "boolean"},
        "is_critical": {"type": "boolean"},
        "error_types": {"type": "array", "maxItems": len(ERRORS), "items": {"enum": list(ERRORS)}},
    },
)
_TYPES = {
    "type": "array",
    "minItems": 1,
    "maxItems": len(ERRORS),
    "items": {"enum": list(PUBLISHED_ERRORS)},
}
_PUBLISHED = _JudgeForm(
    system=(
        "You judge the reasoning of somebody about a case of radiology. You know the case and its diagnosis. "
        "You judge each step by itself, and reply with one JSON object and no other text."
    ),
    asked="""{notice}

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
""",
    errors=PUBLISHED_ERRORS,
    reply="verdicts",
    entry={
        "is_factual": {"type": "boolean"},
        "is_critical": {"type": "boolean"},
        "explanation": {"type": "string", "minLength": 2, "maxLength": 300},
        "error_types": {"anyOf": [_TYPES, {"type": "null"}]},
    },
)
_FORMS: Mapping[Form, _JudgeForm] = {"own": _OWN, "published": _PUBLISHED}


def requests(source: Source, reasonings: Sequence[Reasoning], form: Form = "own") -> list[TextRequest]:
    """Return the requests to the judge, one for each line of steps."""
    asked = {reasoning.case for reasoning in reasonings}
    texts = {
        number: case_texts(record, case, form) for number, (record, case) in cases(source, asked).items()
    }
    return [
        TextRequest(
            f"line-{reasoning.line:06d}",
            "step3",
            _FORMS[form].system,
            prompt_of(texts[reasoning.case], reasoning.steps, form),
            _schema(len(reasoning.steps), form),
        )
        for reasoning in reasonings
    ]


def prompt_of(case: Mapping[str, str], steps: Sequence[str], form: Form = "own") -> str:
    """Return the user message; each step is on one line, so that none can pass for two."""
    listed = "\n".join(f"{number}. {' '.join(step.split())}" for number, step in enumerate(steps, start=1))
    shown = fenced({**case, "steps": listed})
    judge = _FORMS[form]
    return judge.asked.format(
        notice=shown.notice, **shown.blocks, count=len(steps), errors=", ".join(judge.errors)
    )


def case_texts(record: Mapping[str, Any], case: Case, form: Form) -> dict[str, str]:
    """Return the texts of a case that a judge is shown, by name; captions without a second of one wording."""
    texts = _OF_CASE[form](record, case)
    return {name: text.replace(FRAME, " ") for name, text in texts.items()}


def _own_texts(record: Mapping[str, Any], case: Case) -> dict[str, str]:
    (question,) = case.questions
    options = (f"{key}. {text}" for key, text in zip(LETTERS, question.options, strict=True))
    return {  # in this order, on which the marker between the texts depends
        "history": case.history,
        "options": "\n".join(options),
        "answer": LETTERS[question.answer[0]],
        "findings": case.findings or _NONE,
        "discussion": str(record.get("discussion") or _NONE),
    }


def published_texts(record: Mapping[str, Any], case: Case) -> dict[str, str]:
    captions = dict.fromkeys(" ".join(image.caption.split()) for image in case.images if image.caption)
    (question,) = case.questions
    answer = question.options[question.answer[0]]
    return {
        "title": str(record.get("title") or _NONE),
        "history": case.history,
        "findings": case.findings or _NONE,
        "discussion": str(record.get("discussion") or _NONE),
        "diagnosis": str(record.get("correct_answer_text") or answer),
        "captions": "\n".join(f"- {caption}" for caption in captions) or _NONE,
    }


_OF_CASE: Mapping[Form, Callable[[Mapping[str, Any], Case], dict[str, str]]] = {
    "own": _own_texts,
    "published": published_texts,
}


def _schema(count: int, form: Form) -> str:
    judge = _FORMS[form]
    entry = {
        "type": "object",
        "properties": judge.entry,
        "required": list(judge.entry),
        "additionalProperties": False,
    }
    listed = {"type": "array", "minItems": count, "maxItems": count, "items": entry}
    reply_schema = {"type": "object", "properties": {judge.reply: listed}, "required": [judge.reply]}
    return json.dumps(reply_schema | {"additionalProperties": False})


def read_verdicts(reply: str | None, count: int, form: Form = "own") -> tuple[StepVerdict, ...] | None:
    """Parse a reply into one verdict per step; None if it does not match the schema."""
    judge = _FORMS[form]
    try:
        read = parse_json(reply or "")
        if not isinstance(read, dict) or read.keys() != {judge.reply}:
            return None
        entries = read[judge.reply]
        whole = isinstance(entries, list) and len(entries) == count
        if not whole or not all(
            isinstance(one, dict) and one.keys() == judge.entry.keys() for one in entries
        ):
            return None
        return tuple(step_verdict(entry, form) for entry in entries)
    except (InputError, ValueError):
        return None


def judged_line(reasoning: Reasoning, verdicts: tuple[StepVerdict, ...] | None) -> str:
    """Return a line of the verdicts file; `judge` is null if the model's reply was invalid."""
    judge = None if verdicts is None else [asdict(verdict) for verdict in verdicts]
    return (
        json.dumps({"line": reasoning.line, "case": reasoning.case, "judge": judge}, ensure_ascii=False)
        + "\n"
    )
