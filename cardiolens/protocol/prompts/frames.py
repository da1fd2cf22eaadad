"""The block of frames and captions, the part of a prompt independent of budget and question."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from cardiolens.protocol.select.cine import key_layers
from cardiolens.protocol.select.selection import Frame
from cardiolens.storage.schemas import FRAME
from cardiolens.study.structure import StudyStructure, VolumeStructure

CaptionLevel = Literal["none", "view", "full"]


def frame_block(frames: Sequence[Frame], structure: StudyStructure, level: CaptionLevel) -> str:
    """Render frames in order: a caption on one line, the mark of the frame's place on the next."""
    volumes = structure.volumes
    places = {name: captions(volumes[name], level) for name in {frame.volume_id for frame in frames}}
    return "".join(
        f"Frame {number}:{places[frame.volume_id][frame.idx]}\n{FRAME}\n"
        for number, frame in enumerate(frames, start=1)
    )


def caption_block(frames: Sequence[Frame], structure: StudyStructure, level: CaptionLevel) -> str:
    """Render the captions of frames in order, one per line, without marks for frames (protocol 16.8)."""
    volumes = structure.volumes
    return "".join(
        f"{caption(frame, volumes[frame.volume_id], number, level)}\n"
        for number, frame in enumerate(frames, start=1)
    )


def caption(frame: Frame, volume: VolumeStructure, number: int, level: CaptionLevel) -> str:
    """Return a caption, e.g. `Frame 3: cine, short axis, slice 2 of 10 (base to apex), phase 1 of 25`."""
    return f"Frame {number}:{captions(volume, level)[frame.idx]}"


@lru_cache(maxsize=512)
def captions(volume: VolumeStructure, level: CaptionLevel) -> tuple[str, ...]:
    """Return the text after `Frame n:` of each frame of a volume, by canonical index."""
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
