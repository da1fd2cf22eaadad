"""A case of images and text as the part of a prompt before the question (protocol 12).

The history stands first, then the images in the order of their slots. Gold text stands where a setting gives
it, and nowhere else: the caption of an image below that image, the findings of the case after all images.
"""

from collections.abc import Sequence
from typing import Literal

from cardiolens.protocol.medthinkvqa.case_text import CaseText, Gold
from cardiolens.protocol.prompts.frames import CaptionLevel
from cardiolens.protocol.select.selection import Frame
from cardiolens.storage.tables import FRAME

Lacking = Literal["captions_missing", "findings_missing"]


def case_block(
    case_text: CaseText, frames: Sequence[Frame], gold: Gold, level: CaptionLevel, *, pictures: bool = True
) -> str:
    """The history, and the images shown or, without `pictures`, the lines that stand beside them."""
    images = "".join(
        _image(case_text, frame, number, gold, level, pictures=pictures)
        for number, frame in enumerate(frames, start=1)
    )
    findings = (
        f"Imaging findings of all images of the case:\n{case_text.findings}\n" if gold == "findings" else ""
    )
    return f"Clinical history:\n{case_text.history}\n{images}{findings}"


def lacking(case_text: CaseText, frames: Sequence[Frame], gold: Gold) -> Lacking | None:
    """The gold text that a setting would give and the case does not have; None where it has some."""
    if gold == "findings" and not case_text.findings:
        return "findings_missing"
    if gold == "captions" and frames and not any(_captions(case_text)[frame.idx] for frame in frames):
        return "captions_missing"
    return None


def _image(
    case_text: CaseText, frame: Frame, number: int, gold: Gold, level: CaptionLevel, *, pictures: bool
) -> str:
    modality = (
        f" {case_text.modalities[frame.idx]}" if level == "full" and case_text.modalities is not None else ""
    )
    place = f"{FRAME}\n" if pictures else ""
    caption = _captions(case_text)[frame.idx] if gold == "captions" else ""
    return f"Image {number}:{modality}\n{place}" + (
        f"Findings of image {number}: {caption}\n" if caption else ""
    )


def _captions(case_text: CaseText) -> tuple[str, ...]:
    assert case_text.captions is not None, "a setting with captions has them read"
    return case_text.captions
