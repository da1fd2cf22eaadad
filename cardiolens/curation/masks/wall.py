"""The left ventricular wall in polar coordinates: AHA segments, thickness, lesions and their depth.

Angles follow the protocol: 0 at image right, 90 up. If the right ventricle is labelled, the middle of the
septum is rotated to 180 degrees. Radii are computed from areas of narrow sectors, to sub-pixel accuracy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from cardiolens.curation.masks.labels import WALL, Tissue
from cardiolens.curation.masks.mask_stack import Mask, Stack
from cardiolens.protocol.tasks.segments import SEGMENTS, segments_at

Floats = NDArray[np.float64]

BASAL, MID = 0.35, 0.70  # ends of the levels, as shares of the slices with a cavity (protocol 10.1)
LEAST_SLICES = 7  # slices with a cavity; with fewer, the level of a slice is unknown
MOST_TURN = 45.0  # largest rotation of the display in degrees
_FINE = 4  # sub-pixels per pixel side
_BINS = 36
_WIDTH = 2 * np.pi / _BINS


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice: segment and angular bin of each wall sub-pixel, inner and outer radius of each bin."""

    number: int
    box: tuple[slice, slice]  # rows and columns around the ventricle; the arrays below cover this box
    segments: NDArray[np.int64]  # 0 outside the wall
    bins: NDArray[np.int64]
    radius: Floats  # distance of each sub-pixel from the middle of the cavity, mm
    inner: Floats
    outer: Floats

    def of(self, inside: Mask) -> Mask:
        """Return this slice's part of a region of the stack, in sub-pixels."""
        return fine(inside[self.number][self.box])

    @property
    def complete(self) -> bool:
        """Return whether the wall is a closed ring around a cavity."""
        return bool((self.inner > 0).all() and (self.outer > self.inner).all())


@dataclass(frozen=True, slots=True)
class Wall:
    """The slices of a wall, from base to apex."""

    slices: tuple[Slice, ...]
    turn: float | None  # degrees of the septum from image left; None without a right ventricle
    n_slices: int  # number of slices with a cavity
    has_cap: bool  # whether slices without a cavity lie beyond its end

    def thickness(self) -> dict[int, float]:
        """Return the median thickness of segments 1 to 16 in mm, from closed rings."""
        closed = [ring for ring in self.slices if ring.complete]
        thickness_of: dict[int, list[float]] = {}
        for ring in closed:
            for segment in SEGMENTS[:-1]:
                inside = np.unique(ring.bins[ring.segments == segment])
                thickness_of.setdefault(segment, []).extend((ring.outer - ring.inner)[inside[1:-1]].tolist())
        return {segment: float(np.median(values)) for segment, values in thickness_of.items() if values}

    def share(self, lesion: Mask) -> dict[int, float]:
        """Return the lesion's share of each segment's wall."""
        total, part = np.zeros(18), np.zeros(18)
        for ring in self.slices:
            inside = ring.of(lesion)
            total += np.bincount(ring.segments.ravel(), minlength=18)
            part += np.bincount(ring.segments[inside], minlength=18)
        return {segment: part[segment] / total[segment] for segment in SEGMENTS if total[segment]}

    def depths(self, lesion: Mask) -> tuple[float, float] | None:
        """Return inner and outer depth of a lesion, from 0 at the cavity to 1; None without a closed ring."""
        inner, outer = [], []
        for ring in self.slices:
            inside = ring.of(lesion) & (ring.segments > 0)
            if not ring.complete or not inside.any():
                continue
            bins, counts = np.unique(ring.bins[inside], return_counts=True)
            for at in bins[counts >= 0.5 * counts.max()]:
                ray = ring.radius[inside & (ring.bins == at)]
                depth = (ray - ring.inner[at]) / (ring.outer[at] - ring.inner[at])
                inner.append(float(np.percentile(depth, 5)))
                outer.append(float(np.percentile(depth, 95)))
        return (float(np.median(inner)), float(np.median(outer))) if inner else None


def wall_of(stack: Stack) -> Wall:
    """Return the wall of a stack, from base to apex."""
    cavity = stack.cavity
    with_cavity = np.flatnonzero(cavity.any(axis=(1, 2)))
    turn = _turn(stack)
    slices = []
    for place, number in enumerate(with_cavity.tolist()):
        share = (place + 0.5) / len(with_cavity)
        level = "basal" if share < BASAL else "mid" if share < MID else "apical"
        if place + 1 == len(with_cavity) > LEAST_SLICES - 1:
            level = "apex"  # the last slice is oblique to the wall and may lie in the apical cap
        slices.append(_slice(stack, number, level, turn or 0.0))
    last = with_cavity[-1]
    beyond = np.flatnonzero(stack.of(WALL).any(axis=(1, 2)))
    slices += [_slice(stack, int(number), "apex", 0.0) for number in beyond if number > last]
    return Wall(tuple(slices), turn, len(with_cavity), with_cavity[-1] < slices[-1].number)


def fine(inside: Mask) -> Mask:
    """Upsample a slice to sub-pixels."""
    return inside.repeat(_FINE, axis=0).repeat(_FINE, axis=1)


def _slice(stack: Stack, number: int, level: str, turn: float) -> Slice:
    at = Stack(stack.tissues[number : number + 1], stack.row_mm, stack.column_mm, stack.step_mm)
    both = at.cavity[0] | at.of(WALL)[0]
    rows, columns = (np.flatnonzero(both.any(axis=axis)) for axis in (1, 0))
    box = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
    cavity, wall = fine(at.cavity[0][box]), fine(at.of(WALL)[0][box])
    x, y = _plane(stack, cavity if cavity.any() else wall)
    radius = np.hypot(x, y)
    angle = (np.arctan2(y, x) - np.deg2rad(turn)) % (2 * np.pi)
    bins = np.minimum((angle / _WIDTH).astype(np.int64), _BINS - 1)
    area = stack.row_mm * stack.column_mm / _FINE**2
    empty = np.bincount(bins[cavity], minlength=_BINS) * area
    full = empty + np.bincount(bins[wall], minlength=_BINS) * area
    segments = np.where(wall, segments_at(np.rad2deg(angle), level), 0)
    return Slice(number, box, segments, bins, radius, np.sqrt(2 * empty / _WIDTH), np.sqrt(2 * full / _WIDTH))


def _plane(stack: Stack, around: Mask) -> tuple[Floats, Floats]:
    """Return x and y of every sub-pixel in mm, relative to the middle of a region."""
    rows, columns = np.indices(around.shape)
    y = (rows[around].mean() - rows) * stack.row_mm / _FINE
    x = (columns - columns[around].mean()) * stack.column_mm / _FINE
    return x, y


def _turn(stack: Stack) -> float | None:
    """Return the angle from image left to the septum's middle, in degrees; None without an RV."""
    right, wall, cavity = stack.of([Tissue.RV_BLOOD]), stack.of(WALL), stack.cavity
    toward = 0j
    for number in np.flatnonzero(right.any(axis=(1, 2)) & cavity.any(axis=(1, 2))):
        touching = wall[number] & ndimage.binary_dilation(right[number], iterations=2)
        if not touching.any():
            continue
        rows, columns = np.nonzero(touching)
        middle = np.argwhere(cavity[number]).mean(axis=0)
        x, y = (columns - middle[1]) * stack.column_mm, (middle[0] - rows) * stack.row_mm
        directions = np.exp(1j * np.arctan2(y, x)).mean()
        toward += directions / abs(directions)
    if not abs(toward):
        return None
    return float(np.rad2deg(np.angle(-toward)))
