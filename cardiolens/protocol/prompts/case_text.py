"""Case texts for prompts, in a file beside the questions; texts that a setting withholds are not read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_text

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
