"""Render the views of a study as stacks of frames with tissue masks."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom import signal
from cardiolens.phantom.draws import Draws
from cardiolens.phantom.geometry import Floats, Heart, Points, points
from cardiolens.phantom.lesions import Lesions
from cardiolens.phantom.parameters import LesionShape
from cardiolens.phantom.planes import Plane, Size, View, grid, planes
from cardiolens.phantom.signal import Appearance
from cardiolens.phantom.tissue import Scene, heart_region, surroundings, tissue
from cardiolens.protocol.tasks.segments import SEGMENTS

Frames = NDArray[np.int16]  # (frame, row, column), slice by slice; the phase runs fastest
Masks = NDArray[np.uint8]

_SUPERSAMPLING = 2


@dataclass(frozen=True)
class Rendered:
    """One volume as displayed: frames in canonical order, their planes, and masks if requested."""

    view: View
    planes: tuple[Plane, ...]
    phases: int
    es_phase: int
    frames: Frames
    masks: Masks | None

    def beginning_at(self, phase: int) -> "Rendered":
        """Return a cine that begins with another phase, its moments unmarked; other volumes as they are."""
        if not phase or self.view.sequence != "cine":
            return self
        masks = None if self.masks is None else _turned(self.masks, self.phases, phase)
        return replace(self, frames=_turned(self.frames, self.phases, phase), masks=masks, es_phase=0)


def _turned(stack: NDArray[Any], phases: int, first: int) -> NDArray[Any]:
    slices = stack.reshape(-1, phases, *stack.shape[1:])
    return np.roll(slices, -first, axis=1).reshape(stack.shape)


@dataclass(frozen=True)
class Shot:
    """The inputs for rendering one view."""

    scene: Scene
    view: View
    size: Size
    look: Appearance


def render(heart: Heart, view: View, size: Size, *, look: Appearance, seed: str, masks: bool) -> Rendered:
    """Render one view of a heart; `seed` decides noise, bias and slice shifts, and nothing else."""
    shot = shot_of(heart, view, size, look)
    stack = planes(view, heart.parameters, size)
    shifted = [_shifted(shot, plane, seed) for plane in stack]
    scanner = signal.Scanner(seed, view.code, size.pixels, look.sigma)
    frames = np.concatenate([frames_of(shot, plane, scanner, basal=plane is shifted[0]) for plane in shifted])
    marked = np.concatenate([_masks(shot, plane) for plane in shifted]) if masks else None
    count = phases(view, size)
    systole = end_systole(shot.scene.heart, count) if view.sequence == "cine" else 0
    return Rendered(view, tuple(stack), count, systole, frames, marked)


def phases(view: View, size: Size) -> int:
    """Return the number of phases of a view."""
    return {"cine": size.phases, "perfusion": size.beats}.get(view.sequence, 1)


def end_systole(heart: Heart, count: int) -> int:
    """Return the phase of largest activation, as a mean over the segments."""
    return max(
        range(count), key=lambda phase: sum(heart.contraction(phase / count, number) for number in SEGMENTS)
    )


def shot_of(heart: Heart, view: View, size: Size, look: Appearance) -> Shot:
    """Return what one view is rendered from: the heart with what its sequence shows."""
    p = heart.parameters
    d = p.defect
    defect = (LesionShape(d.segments, (d.inner, d.depth), papillary=d.papillary),) if d else ()
    none: tuple[LesionShape, ...] = ()
    shapes, low = {
        "cine": (none, none),
        "lge": (p.lge, p.lge_low),
        "t2": (p.oedema, p.t2_low),
        "perfusion": (defect, none),
    }[view.sequence]
    lesions = Lesions(shapes, p.length, low, pericardium=view.sequence == "lge" and p.pericardial_enhancement)
    scene = Scene(
        heart,
        lesions,
        valves=view.sequence == "cine",
        fat_mm=look.fat_mm,
        slow_flow=look.slow_flow and view.sequence == "t2",
        rim_mm=look.rim_mm if view.sequence == "perfusion" else 0.0,
    )
    return Shot(scene, view, size, look)


def _shifted(shot: Shot, plane: Plane, seed: str) -> Plane:
    """Return a short-axis plane shifted in-plane by up to `slice_shift_mm`, as by another breath-hold."""
    if not shot.look.slice_shift_mm or shot.view.kind == "long_axis":
        return plane
    x, y, z = plane.centre
    draw = Draws(f"{seed}|{shot.view.code}|{z:.6f}", 0)
    reach = shot.look.slice_shift_mm / 2**0.5
    return replace(plane, centre=(x + draw.between(-reach, reach), y + draw.between(-reach, reach), z))


def frames_of(shot: Shot, plane: Plane, scanner: signal.Scanner, *, basal: bool = False) -> Frames:
    """Render the frames of one plane over time; call in stored order, because the noise is one stream."""
    thick = basal and shot.look.basal_partial_volume and shot.view.kind == "short_axis"
    through = [plane, replace(plane, centre=(*plane.centre[:2], plane.centre[2] - 5.0))] if thick else [plane]
    parts = [_signals(shot, _pixels(part, shot.size, _SUPERSAMPLING)) for part in through]
    return np.stack([scanner.image(sum(images) / len(through)) for images in zip(*parts, strict=True)])


def _signals(shot: Shot, where: Points) -> Iterator[Floats]:
    """Yield the noiseless frames of one plane over time."""
    scene, size, p = shot.scene, shot.size, shot.scene.heart.parameters
    ground = surroundings(where, p.pleural_fluid)
    near = heart_region(scene.heart, where)
    heart, under = where.take(near), ground[near]
    if shot.view.sequence == "perfusion":
        ground[near] = tissue(scene, heart, 0.0, under)
        for table in signal.perfusion_tables(size.beats, p.defect, dark_rim=shot.look.rim_mm > 0):
            yield _pooled(table[ground], size.pixels)
    else:
        table = signal.static_table(shot.view.sequence, nulled=shot.look.nulled)
        for t in _times(shot):
            ground[near] = tissue(scene, heart, t, under)
            yield _pooled(table[ground], size.pixels)


def _times(shot: Shot) -> list[float]:
    """The times of the cycle at which a view shows the heart: end-diastole alone without phases."""
    n_phases = shot.size.phases if shot.view.sequence == "cine" else 1
    return [phase / n_phases for phase in range(n_phases)]


def _pixels(plane: Plane, size: Size, parts: int) -> Points:
    return points(*grid(plane, size.pixels * parts, size.spacing_mm / parts))


def _pooled(signal_: Floats, pixels: int) -> Floats:
    """Return the mean over the sub-pixels of each pixel."""
    parts = signal_.reshape(pixels, _SUPERSAMPLING, pixels, _SUPERSAMPLING)
    return np.asarray(sum(parts[:, i, :, j] for i in range(2) for j in range(2)) / 4)


def _masks(shot: Shot, plane: Plane) -> Masks:
    """Return tissue codes at pixel centres over time, without distractors, which are not tissue."""
    where = _pixels(plane, shot.size, 1)
    painted = np.stack([tissue(shot.scene.plain(), where, t) for t in _times(shot)])
    repeat = shot.size.beats if shot.view.sequence == "perfusion" else 1
    return painted.reshape(-1, shot.size.pixels, shot.size.pixels).repeat(repeat, axis=0)
