"""Videos in a prompt: the phases of one slice of cine that follow one another, at one place of the text.

A mark alone is the place of a frame. Marks side by side are one place, and their frames one video.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from cardiolens.protocol.prompts.frames import (
    CaptionLevel,
    caption,
    moment_words,
    word_of_phase,
    words_of_slice,
)
from cardiolens.protocol.select.selection import Frame
from cardiolens.storage.schemas import FRAME
from cardiolens.study.structure import StudyStructure, VolumeStructure

FLAG = "video:"  # flag of a request that shows videos, before their number

_PLACES = re.compile(f"({FRAME}+)")
_T = TypeVar("_T")


def has_videos(flags: Iterable[str]) -> bool:
    """Whether a request with these flags shows videos."""
    return any(flag.startswith(FLAG) for flag in flags)


def split_at_places(text: str) -> Iterator[str | int]:
    """Yield the pieces of a prompt in order: texts, and for each place the number of its frames."""
    for piece in _PLACES.split(text):
        if piece:
            yield len(piece) if piece[0] == FRAME else piece


def by_place(text: str, frames: Sequence[_T]) -> list[Sequence[_T]]:
    """Divide the frames of a prompt, one a mark, by its places: one is a frame alone, several are a video."""
    lengths = [match.end() - match.start() for match in _PLACES.finditer(text)]
    assert sum(lengths) == len(frames), "a prompt has one mark for each frame"
    starts = [sum(lengths[:place]) for place in range(len(lengths))]
    return [frames[start : start + length] for start, length in zip(starts, lengths, strict=True)]


def count_videos(text: str) -> int:
    """Return the number of videos of a prompt."""
    return sum(match.end() - match.start() > 1 for match in _PLACES.finditer(text))


def video_block(frames: Sequence[Frame], structure: StudyStructure, level: CaptionLevel) -> str:
    """Render frames in order as `frame_block` does, but phases of a slice as a video with one caption."""
    lines, number = list[str](), 1
    for shot in shots(frames, structure):
        volume = structure.volumes[shot[0].volume_id]
        if len(shot) == 1:
            lines.append(f"{caption(shot[0], volume, number, level)}\n{FRAME}\n")
        else:
            what = _video_words(shot, volume, level)
            lines.append(f"Frames {number} to {number + len(shot) - 1}, as a video:{what}\n")
            lines.append(f"{FRAME * len(shot)}\n")
        number += len(shot)
    return "".join(lines)


def shots(frames: Sequence[Frame], structure: StudyStructure) -> list[tuple[Frame, ...]]:
    """Divide frames, in order, into videos and single frames.

    A video is a run of frames of one slice of a volume over the cardiac cycle, each later in the cycle than
    the one before, counted from the run's first. Everything else stays a single frame.
    """
    divided: list[list[Frame]] = []
    for frame in frames:
        volume = structure.volumes[frame.volume_id]
        if divided and _goes_on(divided[-1], frame, volume):
            divided[-1].append(frame)
        else:
            divided.append([frame])
    return [tuple(shot) for shot in divided]


def _goes_on(shot: Sequence[Frame], frame: Frame, volume: VolumeStructure) -> bool:
    """Return whether a frame goes on with a video."""
    first, last = shot[0], shot[-1]
    if volume.over_time != "cycle" or (first.volume_id, first.slice) != (frame.volume_id, frame.slice):
        return False
    return (frame.phase - first.phase) % volume.n_phases > (last.phase - first.phase) % volume.n_phases


def _video_words(shot: Sequence[Frame], volume: VolumeStructure, level: CaptionLevel) -> str:
    """Return what all captions of a video's frames say, with the phases in the order shown."""
    if level == "none":
        return ""
    where = words_of_slice(volume, shot[0].slice, level)
    moments = ((frame.phase + 1, moment_words(volume, frame.phase, level)) for frame in shot)
    phases = ", ".join(f"{number} ({moment})" if moment else str(number) for number, moment in moments)
    return f"{where}, {word_of_phase(volume)}s {phases} of {volume.n_phases}"
