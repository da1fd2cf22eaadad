"""The block of a case of images and text, before the question of a prompt (protocol 12).

History first, then the images in the order of their slots. Gold text is included only if the setting
gives it: captions below their images, or the findings of the case after all images.
"""

from collections.abc import Sequence
from typing import Literal

from cardiolens.protocol.prompts.case_text import CaseText, Gold
from cardiolens.protocol.prompts.frames import CaptionLevel
from cardiolens.protocol.select.selection import Frame
from cardiolens.storage.schemas import FRAME

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
