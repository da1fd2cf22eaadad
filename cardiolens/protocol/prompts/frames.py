"""Frames in a prompt: captions, the places of frames, and cine shown as videos."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, TypeVar

from cardiolens.protocol.select.clinical import key_layers
from cardiolens.protocol.select.selection import Frame
from cardiolens.storage.schemas import FRAME
from cardiolens.study.structure import StudyStructure, VolumeStructure

CaptionLevel = Literal["none", "view", "full"]


def frame_block(
    frames: Sequence[Frame],
    structure: StudyStructure,
    level: CaptionLevel,
    *,
    marked: bool = True,
    as_video: bool = False,
) -> str:
    """Render frames in order: a caption on one line and, if marked, the frame's place on the next.

    As video, phases of a slice share one caption and one place.
    """
    texts = {name: captions(structure.volumes[name], level) for name in {frame.volume_id for frame in frames}}
    lines, number = list[str](), 1
    for shot in shots(frames, structure) if as_video else [(frame,) for frame in frames]:
        first, last = shot[0], number + len(shot) - 1
        if len(shot) == 1:
            lines.append(f"Frame {number}:{texts[first.volume_id][first.idx]}\n")
        else:
            what = _video_words(shot, structure.volumes[first.volume_id], level)
            lines.append(f"Frames {number} to {last}, as a video:{what}\n")
        if marked:
            lines.append(f"{FRAME * len(shot)}\n")
        number = last + 1
    return "".join(lines)


@lru_cache(maxsize=512)
def captions(volume: VolumeStructure, level: CaptionLevel) -> tuple[str, ...]:
    """Return the text after `Frame n:` of each frame of a volume, by canonical index.

    For example ` cine, short axis, slice 2 of 10 (base to apex), phase 1 of 25`.
    """
    if level == "none":
        return ("",) * volume.n_frames
    slices = [words_of_slice(volume, rank, level) for rank in range(volume.n_slices)]
    phases = [_phase(volume, phase, level) for phase in range(volume.n_phases)]
    return tuple(f"{where}{when}" for where in slices for when in phases)


def words_of_slice(volume: VolumeStructure, rank: int, level: CaptionLevel) -> str:
    """Return what the captions of a slice's frames begin with after `Frame n:`; all but the phase."""
    return f" {words_of(volume)}{_slice(volume, rank, level)}"


def words_of(volume: VolumeStructure) -> str:
    """Return sequence and view of a volume in words, e.g. `cine, short axis`."""
    anatomy = volume.anatomy
    return f"{anatomy.sequences[volume.sequence].words}, {anatomy.views[volume.view].words}"


def word_of_phase(volume: VolumeStructure) -> str:
    """Return what a phase of a volume is called."""
    return volume.anatomy.sequences[volume.sequence].phase


def _slice(volume: VolumeStructure, rank: int, level: CaptionLevel) -> str:
    axis = volume.slice_axis
    if axis is None:
        return f", layer {rank + 1} of {volume.n_slices}" if volume.n_slices > 1 else ""
    text = f", slice {rank + 1} of {volume.n_slices}"
    if not volume.levels_known:
        return text
    nearest = f", {_nearest_level(volume, rank, axis.levels)} level" if level == "full" else ""
    return f"{text} ({axis.words}){nearest}"


def _phase(volume: VolumeStructure, phase: int, level: CaptionLevel) -> str:
    if volume.n_phases == 1:
        return ""
    moment = moment_words(volume, phase, level)
    return f", {word_of_phase(volume)} {phase + 1} of {volume.n_phases}{f', {moment}' if moment else ''}"


def moment_words(volume: VolumeStructure, phase: int, level: CaptionLevel) -> str:
    """Return the name of a phase's moment in the cycle, if it has one and captions name it."""
    if level != "full" or volume.over_time != "cycle":
        return ""
    return {volume.es_phase: "end-systole", volume.ed_phase: "end-diastole"}.get(phase, "")


def _nearest_level(volume: VolumeStructure, rank: int, levels: tuple[str, str, str]) -> str:
    """Return the level of the nearest key layer; ties go to the one nearer the first slice."""
    layers = key_layers(volume)
    nearest = min(range(len(layers)), key=lambda place: abs(layers[place] - rank))
    return {1: levels[1:2], 2: levels[::2], 3: levels}[len(layers)][nearest]


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
