"""Prompts about cases: their texts and images, and the steps before an answer."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.protocol.dialogue.chain import mark
from cardiolens.protocol.prompts.frames import CaptionLevel
from cardiolens.protocol.select.selection import Frame
from cardiolens.storage.schemas import FRAME

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


Lacking = Literal["captions_missing", "findings_missing"]


def case_block(
    case_text: CaseText, frames: Sequence[Frame], gold: Gold, level: CaptionLevel, *, pictures: bool = True
) -> str:
    """Render the history and the images; without `pictures`, only the text lines of the images."""
    images = "".join(
        _image(case_text, frame, number, gold, level, pictures=pictures)
        for number, frame in enumerate(frames, start=1)
    )
    findings = (
        f"Imaging findings of all images of the case:\n{case_text.findings}\n" if gold == "findings" else ""
    )
    history = f"Clinical history:\n{case_text.history}\n" if case_text.history else ""
    return f"{history}{images}{findings}"


def lacking(case_text: CaseText, frames: Sequence[Frame], gold: Gold) -> Lacking | None:
    """Return which gold text of a setting the case lacks; None if it has some or the setting needs none."""
    if gold == "findings" and not case_text.findings:
        return "findings_missing"
    if gold == "captions" and frames and not any(_captions(case_text)[frame.idx] for frame in frames):
        return "captions_missing"
    return None


def _image(
    case_text: CaseText, frame: Frame, number: int, gold: Gold, level: CaptionLevel, *, pictures: bool
) -> str:
    name = case_text.modalities[frame.idx] if level == "full" and case_text.modalities is not None else ""
    modality = f" {name}" if name else ""
    place = f"{FRAME}\n" if pictures else ""
    caption = _captions(case_text)[frame.idx] if gold == "captions" else ""
    return f"Image {number}:{modality}\n{place}" + (
        f"Findings of image {number}: {caption}\n" if caption else ""
    )


def _captions(case_text: CaseText) -> tuple[str, ...]:
    assert case_text.captions is not None, "captions are loaded if a setting needs them"
    return case_text.captions


_IMAGES = "Step 1: findings of each image, as you described them:"
_FINDINGS = "Step 2: imaging findings of the case, as you summarised them:"


def steps_before(ending: str, n_images: int) -> tuple[str, str, str]:
    """Return the texts after the images for step 1, step 2 and the answer, which ends with `ending`."""
    first = (
        f"Step 1: describe the findings of each of the {n_images} images above, one line for each image, in "
        "their order, as `Image 1: ...`. Do not name a diagnosis."
    )
    images = f"{_IMAGES}\n{mark(0)}\n"
    second = (
        f"{images}Step 2: summarise the imaging findings of the whole case in one paragraph. Do not name a "
        "diagnosis."
    )
    return first, second, f"{images}{_FINDINGS}\n{mark(1)}\n{ending}"
