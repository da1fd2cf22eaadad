"""Case texts for prompts, in a file beside the questions; texts that a setting withholds are not read."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.protocol.medthinkvqa.case import LETTERS, Case
from cardiolens.protocol.medthinkvqa.files import Source
from cardiolens.protocol.tasks.questions import write_questions

PROTOCOL = "medthinkvqa-1"
SUBTASK = "M01"
QUESTION = "What is the most likely diagnosis?"

Gold = Literal["none", "captions", "findings"]
"""The gold text that a setting gives: none (direct), captions (twi_oracle1) or findings (twi_oracle2)."""


@dataclass(frozen=True, slots=True)
class CaseText:
    """The texts of one case for prompts; None for those that no setting of the sweep needs."""

    history: str
    modalities: tuple[str, ...] | None = None  # by slot
    captions: tuple[str, ...] | None = None  # by slot; bears the answer
    findings: str | None = None  # bears the answer


def told_path(questions: Path) -> Path:
    """Return the path of the case texts beside a file of questions."""
    return questions.with_suffix(".told.jsonl")


def write_cases(questions: Path, source: Source, cases: Iterable[Case]) -> None:
    """Write the questions of cases, and their texts for prompts beside them."""
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
    disk.write_text(told_path(questions), text)


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
    """Load the case texts that the given prompt settings need, by study."""
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
