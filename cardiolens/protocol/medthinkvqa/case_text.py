"""What prompts may tell of cases, in a file beside the questions; what a setting withholds is not read."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted import parse_json, read_text
from cardiolens.protocol.medthinkvqa.case import LETTERS, Case
from cardiolens.protocol.medthinkvqa.files import Source
from cardiolens.protocol.tasks.questions import write_questions
from cardiolens.storage import tables

PROTOCOL = "medthinkvqa-1"
SUBTASK = "M01"
QUESTION = "What is the most likely diagnosis?"

Gold = Literal["none", "captions", "findings"]
"""The gold text that a setting gives: none (direct), captions (twi_oracle1) or findings (twi_oracle2)."""


@dataclass(frozen=True, slots=True)
class CaseText:
    """What prompts may tell of one case; None for what no setting of the sweep gives."""

    history: str
    modalities: tuple[str, ...] | None = None  # by slot
    captions: tuple[str, ...] | None = None  # by slot; bears the answer
    findings: str | None = None  # bears the answer


def told_path(questions: Path) -> Path:
    """The file beside a file of questions."""
    return questions.with_suffix(".told.jsonl")


def write_cases(questions: Path, source: Source, cases: Iterable[Case]) -> None:
    """Write the questions of cases, and beside them what prompts may tell."""
    cases = list(cases)
    write_questions(questions, [_question(source.name_of(case.number), case) for case in cases])
    lines = (
        {
            "study": source.name_of(case.number),
            "history": case.history,
            "modalities": [image.modality for image in case.images],
            "captions": [image.caption for image in case.images],
            "findings": case.findings,
        }
        for case in cases
    )
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    tables.write_text(told_path(questions), text)


def _question(name: str, case: Case) -> dict[str, Any]:
    options = zip(LETTERS, case.options, strict=True)
    return {
        "schema": "qa-1",
        "qa_id": f"{name}:{SUBTASK}",
        "study_id": name,
        "patient_id": name,
        "tier": 1,
        "subtask": SUBTASK,
        "sequence": "images",
        "question": QUESTION,
        "answer_type": "single",
        "options": [{"key": key, "text": text} for key, text in options],
        "answer": [case.answer],
        "origin": "reader",
        "protocol": PROTOCOL,
    }


def read_told(questions: Path, golds: Collection[Gold], *, modalities: bool) -> Mapping[str, CaseText]:
    """What some settings tell of each case, by study; what none of them gives is left on disk."""
    path = told_path(questions)
    try:
        lines = [parse_json(line) for line in read_text(path).split("\n") if line]
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); prepare the dataset again") from None
    return {
        line["study"]: CaseText(
            history=line["history"],
            modalities=tuple(line["modalities"]) if modalities else None,
            captions=tuple(line["captions"]) if "captions" in golds else None,
            findings=line["findings"] if "findings" in golds else None,
        )
        for line in lines
    }
