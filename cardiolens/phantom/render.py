"""Rendering a study: every view as a stack of frames, and its tissue masks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom import signal
from cardiolens.phantom.appearance import Appearance
from cardiolens.phantom.geometry import Floats, Heart
from cardiolens.phantom.lesions import Lesions
from cardiolens.phantom.parameters import LesionShape, Parameters
from cardiolens.phantom.planes import Plane, Size, View, grid, planes
from cardiolens.phantom.points import Points, points
from cardiolens.phantom.tissue import REST, Distractors, Moment, Scene, moment, tissue

Frames = NDArray[np.int16]  # (frame, row, column), slice by slice, phases running fastest
Masks = NDArray[np.uint8]

_SUPERSAMPLING = 2


@dataclass(frozen=True)
class Rendered:
    """One volume as displayed: frames in canonical order, their planes, and masks where asked for."""

    view: View
    planes: tuple[Plane, ...]
    phases: int
    es_phase: int
    frames: Frames
    masks: Masks | None


def render(p: Parameters, view: View, size: Size, look: Appearance, seed: str, *, masks: bool) -> Rendered:
    """Render one view of a heart; `seed` decides bias and noise alone."""
    scene = _scene(p, view, look)
    stack = planes(view, p, size)
    scanner = signal.Scanner(seed, view.code, size.pixels, look.sigma)
    frames = np.concatenate(
        [_frames(scene, view, plane, size=size, look=look, scanner=scanner) for plane in stack]
    )
    marked = np.concatenate(list(_masks(scene, view, stack, size))) if masks else None
    count = phases(view, size)
    systole = end_systole(scene.heart, count) if view.sequence == "cine" else 0
    return Rendered(view, tuple(stack), count, systole, frames, marked)


def phases(view: View, size: Size) -> int:
    """Frames over time of one plane of a view."""
    return {"cine": size.phases, "perfusion": size.beats}.get(view.sequence, 1)


def end_systole(heart: Heart, count: int) -> int:
    """The phase of largest activation."""
    return max(range(count), key=lambda phase: moment(heart, phase, count).a)


def _scene(p: Parameters, view: View, look: Appearance) -> Scene:
    defect = (LesionShape(p.defect.segments, (0.0, p.defect.depth)),) if p.defect else ()
    shown = {"cine": (), "lge": p.lge, "t2": p.oedema, "perfusion": defect}[view.sequence]
    distractors = Distractors(
        fat_mm=look.fat_mm,
        slow_flow=look.slow_flow and view.sequence == "t2",
        rim_mm=look.rim_mm if view.sequence == "perfusion" else 0.0,
    )
    return Scene(Heart(p), Lesions(shown, p.length), distractors, valves=view.sequence == "cine")


def _frames(
    scene: Scene, view: View, plane: Plane, *, size: Size, look: Appearance, scanner: signal.Scanner
) -> Frames:
    """The frames of one plane over time; planes must be taken in stored order, as the noise is one stream."""
    where = _pixels(plane, size, _SUPERSAMPLING)
    return np.stack([scanner.image(image) for image in _signals(scene, view, where, size, look)])


def _signals(scene: Scene, view: View, where: Points, size: Size, look: Appearance) -> Iterator[Floats]:
    """Noiseless frames of one plane over time."""
    if view.sequence == "perfusion":
        still = tissue(scene, where, REST)
        for table in signal.perfusion_tables(size.beats, dark_rim=look.rim_mm > 0):
            yield _pooled(table[still], size.pixels)
    else:
        table = signal.static_table(view.sequence, nulled=look.nulled)
        for at in _moments(scene.heart, view, size):
            yield _pooled(table[tissue(scene, where, at)], size.pixels)


def _moments(heart: Heart, view: View, size: Size) -> list[Moment]:
    if view.sequence != "cine":
        return [REST]
    return [moment(heart, phase, size.phases) for phase in range(size.phases)]


def _pixels(plane: Plane, size: Size, parts: int) -> Points:
    return points(*grid(plane, size.pixels * parts, size.spacing_mm / parts))


def _pooled(signal_: Floats, pixels: int) -> Floats:
    """Mean over the parts of each pixel."""
    parts = signal_.reshape(pixels, _SUPERSAMPLING, pixels, _SUPERSAMPLING)
    return np.asarray(sum(parts[:, i, :, j] for i in range(2) for j in range(2)) / 4)


def _masks(scene: Scene, view: View, stack: list[Plane], size: Size) -> Iterator[Masks]:
    """Tissue codes at pixel centres; distractors are no tissue and are left out."""
    clean = Scene(scene.heart, scene.lesions, valves=scene.valves)
    for plane in stack:
        where = _pixels(plane, size, 1)
        painted = [tissue(clean, where, at) for at in _moments(scene.heart, view, size)]
        repeat = size.beats if view.sequence == "perfusion" else 1
        yield np.stack(painted).reshape(-1, size.pixels, size.pixels).repeat(repeat, axis=0)
