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

INSERTIONS = (120.0, 240.0)  # degrees at which the right ventricle meets the septum
_SPECK_DEG, _SPECKS_APART_DEG, _SPECK_MM = 8.0, 20.0, 6.0  # width, period and length; rows alternate
_CORE_EDGE_DEG = 15.0  # of bright rim beside a dark core
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
    low: tuple[LesionShape, ...] = ()  # dark: cores inside the others, or alone
    pericardium: bool = False

    @property
    def papillary(self) -> bool:
        return any(shape.papillary for shape in self.shapes)

    @property
    def low_papillary(self) -> bool:
        return any(shape.papillary for shape in self.low)

    @property
    def rv_free_wall(self) -> bool:
        return any(shape.rv_free_wall for shape in self.shapes)

    @cached_property
    def areas(self) -> tuple[NDArray[np.bool_], ...]:
        """One mask per lesion of the (angle, height) bins that it covers."""
        return tuple(_area(shape, self.length) for shape in self.shapes)

    @cached_property
    def low_areas(self) -> tuple[NDArray[np.bool_], ...]:
        """One mask per lesion of low signal."""
        return tuple(_inner(_area(shape, self.length), shape) for shape in self.low)

    def paint(self, segment: Codes, angle: Ints, height: Ints, depth: Floats) -> Codes:
        """Return myocardium codes with lesions, at bins and depths (0 endocardium, 1 epicardium)."""
        tissue_codes = segment.copy()
        for added, shapes, areas in (
            (codes.LESION, self.shapes, self.areas),
            (codes.OBSTRUCTION, self.low, self.low_areas),
        ):
            for shape, area in zip(shapes, areas, strict=True):
                hit = area[angle, height] & (depth >= shape.depth[0]) & (depth <= shape.depth[1])
                tissue_codes[hit] = segment[hit] + added
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
            if shape.insertion:
                phi = INSERTIONS[0] + width / 2 if segment in (2, 8) else INSERTIONS[1] - width / 2
            yield Island(phi + offset, u, width, shape.island_mm / length)


def _area(shape: LesionShape, length: float) -> NDArray[np.bool_]:
    if shape.pattern == "continuous":
        return np.isin(segment_map(), shape.segments)
    phi = (np.arange(ANGLES) * (360 / ANGLES))[:, None]
    if shape.pattern == "speckled":
        row = np.arange(HEIGHTS) * (length / (HEIGHTS - 1)) // _SPECK_MM % 2
        return np.isin(segment_map(), shape.segments) & (
            (phi + row * _SPECKS_APART_DEG / 2) % _SPECKS_APART_DEG < _SPECK_DEG
        )
    u = (np.arange(HEIGHTS) / (HEIGHTS - 1))[None, :]
    area = np.zeros((ANGLES, HEIGHTS), dtype=bool)
    for island in islands(shape, length):
        across = ((phi - island.phi + 180) % 360 - 180) / (island.width / 2)
        along = (u - island.u) / (island.height / 2)
        across, along = across * across, along * along  # no power function: libraries round it differently
        area |= across * across + along * along <= 1
    return area


def _inner(area: NDArray[np.bool_], shape: LesionShape) -> NDArray[np.bool_]:
    """Return a continuous area without its edge, so that a dark core has a bright rim."""
    if shape.pattern != "continuous":
        return area
    edge = round(_CORE_EDGE_DEG * ANGLES / 360)
    return np.asarray(area & np.roll(area, edge, axis=0) & np.roll(area, -edge, axis=0))
