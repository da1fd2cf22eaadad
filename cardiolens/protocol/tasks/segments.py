"""AHA 17-segment model: levels, walls and coronary territories (Cerqueira 2002)."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

SEGMENTS = tuple(range(1, 18))
WALL_SEGMENTS = tuple(range(1, 17))  # the apical cap, 17, belongs to no wall

LEVELS: Mapping[str, frozenset[int]] = {
    "basal": frozenset(range(1, 7)),
    "mid": frozenset(range(7, 13)),
    "apical": frozenset(range(13, 17)),
    "apex": frozenset({17}),
}
WALLS: Mapping[str, frozenset[int]] = {
    "anterior": frozenset({1, 7, 13}),
    "septal": frozenset({2, 3, 8, 9, 14}),
    "inferior": frozenset({4, 10, 15}),
    "lateral": frozenset({5, 6, 11, 12, 16}),
}
SIX_WALLS: Mapping[str, frozenset[int]] = {  # two of the apical level's four segments lie in two walls each
    "anterior": frozenset({1, 7, 13}),
    "anteroseptal": frozenset({2, 8, 14}),
    "inferoseptal": frozenset({3, 9, 14}),
    "inferior": frozenset({4, 10, 15}),
    "inferolateral": frozenset({5, 11, 16}),
    "anterolateral": frozenset({6, 12, 16}),
}
TERRITORIES: Mapping[str, frozenset[int]] = {
    "lad": frozenset({1, 2, 7, 8, 13, 14, 17}),
    "rca": frozenset({3, 4, 9, 10, 15}),
    "lcx": frozenset({5, 6, 11, 12, 16}),
}


def touched(segments: Collection[int], groups: Mapping[str, frozenset[int]]) -> tuple[str, ...]:
    """Return the names of the groups that contain any of the segments, in the order of `groups`."""
    return tuple(name for name, members in groups.items() if members & set(segments))


def in_one_territory(segments: Collection[int]) -> bool:
    """Return whether one coronary territory contains all the segments."""
    return any(set(segments) <= members for members in TERRITORIES.values())


def segments_at(degrees: NDArray[np.floating[Any]], level: str) -> NDArray[Any]:
    """Return the segment at each angle of a level: 0 at image right (lateral), 90 up (anterior)."""
    if level == "apex":
        return np.full(degrees.shape, 17)
    if level == "apical":
        return np.array([16, 13, 14, 15])[((degrees + 45) % 360 // 90).astype(np.intp)]
    basal = np.array([6, 1, 2, 3, 4, 5])[(degrees % 360 // 60).astype(np.intp)]
    return basal + (6 if level == "mid" else 0)
