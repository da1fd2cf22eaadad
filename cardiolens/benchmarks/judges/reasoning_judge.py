"""A model as judge of reasoning about MedThinkVQA cases: its prompt, and the validation of its replies.

The judge sees what the judge of MedThinkVQA's makers sees, title, discussion and captions among it, and
replies in their form; the words of the prompt are ours.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.fence import fenced
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.case import Case
from cardiolens.benchmarks.judges.reasoning import PUBLISHED_ERRORS, Reasoning, StepVerdict, step_verdict
from cardiolens.benchmarks.medthinkvqa import cases
from cardiolens.protocol.prompts.text_request import TextRequest
from cardiolens.storage.schemas import FRAME

_NONE = "not given"
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
_ENTRY = {
    "is_factual": {"type": "boolean"},
    "is_critical": {"type": "boolean"},
    "explanation": {"type": "string", "minLength": 2, "maxLength": 300},
    "error_types": {"anyOf": [_TYPES, {"type": "null"}]},
}


def requests(source: Source, reasonings: Sequence[Reasoning]) -> list[TextRequest]:
    """Return the requests to the judge, one for each line of steps."""
    asked = {reasoning.case for reasoning in reasonings}
    texts = {number: case_texts(record, case) for number, (record, case) in cases(source, asked).items()}
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


def prompt_of(case: Mapping[str, str], steps: Sequence[str]) -> str:
    """Return the user message; each step is on one line, so that none can pass for two."""
    listed = "\n".join(f"{number}. {' '.join(step.split())}" for number, step in enumerate(steps, start=1))
    shown = fenced({**case, "steps": listed})
    errors = ", ".join(PUBLISHED_ERRORS)
    return _ASKED.format(notice=shown.notice, **shown.blocks, count=len(steps), errors=errors)


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


def _schema(count: int) -> str:
    entry = {
        "type": "object",
        "properties": _ENTRY,
        "required": list(_ENTRY),
        "additionalProperties": False,
    }
    listed = {"type": "array", "minItems": count, "maxItems": count, "items": entry}
    reply = {"type": "object", "properties": {"verdicts": listed}, "required": ["verdicts"]}
    return json.dumps(reply | {"additionalProperties": False})


def read_verdicts(reply: str | None, count: int) -> tuple[StepVerdict, ...] | None:
    """Parse a reply into one verdict per step; None if it does not match the schema."""
    try:
        read = parse_json(reply or "")
        entries = read["verdicts"] if isinstance(read, dict) and read.keys() == {"verdicts"} else None
        if not isinstance(entries, list) or len(entries) != count:
            return None
        if not all(isinstance(one, dict) and one.keys() == _ENTRY.keys() for one in entries):
            return None
        return tuple(map(step_verdict, entries))
    except (InputError, ValueError):
        return None


def judged_line(reasoning: Reasoning, verdicts: tuple[StepVerdict, ...] | None) -> str:
    """Return a line of the verdicts file; `judge` is null if the model's reply was invalid."""
    judge = None if verdicts is None else [asdict(verdict) for verdict in verdicts]
    line = {"line": reasoning.line, "case": reasoning.case, "judge": judge}
    return json.dumps(line, ensure_ascii=False) + "\n"
