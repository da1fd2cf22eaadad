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
    """The texts of one case for prompts; empty for those that no setting of the sweep needs."""

    history: str
    modalities: tuple[str, ...] = ()  # by slot
    captions: tuple[str, ...] = ()  # by slot; bears the answer
    findings: str = ""  # bears the answer


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
            modalities=tuple(line["modalities"]) if modalities else (),
            captions=tuple(line["captions"]) if "captions" in golds else (),
            findings=line["findings"] if "findings" in golds else "",
        )
        for line in lines
    }


def case_block(
    case_text: CaseText, frames: Sequence[Frame], gold: Gold, level: CaptionLevel, *, pictures: bool = True
) -> str:
    """Render the history and the images; without `pictures`, only the text lines of the images."""
    block = f"Clinical history:\n{case_text.history}\n" if case_text.history else ""
    for number, frame in enumerate(frames, start=1):
        name = case_text.modalities[frame.idx] if level == "full" and case_text.modalities else ""
        block += f"Image {number}: {name}\n" if name else f"Image {number}:\n"
        block += f"{FRAME}\n" if pictures else ""
        caption = case_text.captions[frame.idx] if gold == "captions" else ""
        block += f"Findings of image {number}: {caption}\n" if caption else ""
    if gold == "findings":
        block += f"Imaging findings of all images of the case:\n{case_text.findings}\n"
    return block


def lacking(
    case_text: CaseText, frames: Sequence[Frame], gold: Gold
) -> Literal["captions_missing", "findings_missing"] | None:
    """Return which gold text of a setting the case lacks; None if it has some or the setting needs none."""
    if gold == "findings" and not case_text.findings:
        return "findings_missing"
    if gold == "captions" and frames and not any(case_text.captions[frame.idx] for frame in frames):
        return "captions_missing"
    return None


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
