"""Lesions: the part of the wall that each lesion covers, by segment, depth and pattern (10.3, 10.4)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom import codes
from cardiolens.phantom.geometry import ANGLES, HEIGHTS, Floats, Ints, segment_map, segment_middle
from cardiolens.phantom.parameters import LesionShape

Codes = NDArray[np.uint8]

_PAIR_DEG, _PAIR_APART_DEG = 20.0, 31.0  # of two islands per segment: width, distance of centres


@dataclass(frozen=True)
class Island:
    """One island of a patchy lesion: its centre and its size."""

    phi: float  # degrees
    u: float
    width: float  # degrees
    height: float  # in u


@dataclass(frozen=True)
class Lesions:
    """The lesions visible in one sequence, for a left ventricle of a given cavity length (mm)."""

    shapes: tuple[LesionShape, ...]
    length: float

    @property
    def papillary(self) -> bool:
        return any(shape.papillary for shape in self.shapes)

    @property
    def rv_free_wall(self) -> bool:
        return any(shape.rv_free_wall for shape in self.shapes)

    @cached_property
    def areas(self) -> tuple[NDArray[np.bool_], ...]:
        """One mask per lesion of the (angle, height) bins that it covers."""
        return tuple(_area(shape, self.length) for shape in self.shapes)

    def paint(self, segment: Codes, angle: Ints, height: Ints, depth: Floats) -> Codes:
        """Return myocardium codes with lesions, at bins and depths (0 endocardium, 1 epicardium)."""
        tissue_codes = segment.copy()
        for shape, area in zip(self.shapes, self.areas, strict=True):
            hit = area[angle, height] & (depth >= shape.depth[0]) & (depth <= shape.depth[1])
            tissue_codes[hit] = segment[hit] + codes.LESION
            if shape.obstruction:
                core = hit & _inner(area)[angle, height] & (depth > 0.2) & (depth < 0.65)
                tissue_codes[core] = segment[core] + codes.OBSTRUCTION
        return tissue_codes


def islands(shape: LesionShape, length: float) -> Iterator[Island]:
    """Yield the islands of a patchy lesion: one per segment, or two if it has fewer than 3 segments."""
    per_segment = 1 if len(shape.segments) >= 3 else 2
    for segment in shape.segments:
        angle, height = segment_middle(segment)
        phi, u = angle * (360 / ANGLES), height / (HEIGHTS - 1)
        for part in range(per_segment):
            offset = (part - (per_segment - 1) / 2) * _PAIR_APART_DEG
            width = shape.island_deg if per_segment == 1 else _PAIR_DEG
            yield Island(phi + offset, u, width, shape.island_mm / length)


def _area(shape: LesionShape, length: float) -> NDArray[np.bool_]:
    if shape.pattern == "continuous":
        return np.isin(segment_map(), shape.segments)
    phi = (np.arange(ANGLES) * (360 / ANGLES))[:, None]
    u = (np.arange(HEIGHTS) / (HEIGHTS - 1))[None, :]
    area = np.zeros((ANGLES, HEIGHTS), dtype=bool)
    for island in islands(shape, length):
        across = ((phi - island.phi + 180) % 360 - 180) / (island.width / 2)
        along = (u - island.u) / (island.height / 2)
        across, along = across * across, along * along  # no power function: libraries round it differently
        area |= across * across + along * along <= 1
    return area


def _inner(area: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the part of an area at least 10 degrees inside its edge."""
    turned = np.stack([np.roll(area, step, axis=0) for step in (-20, -10, 0, 10, 20)])
    return np.asarray(turned.all(axis=0))
