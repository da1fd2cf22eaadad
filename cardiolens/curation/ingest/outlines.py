"""Outlines of the left ventricle as text, a point a line, become masks: cavity 1, muscle 2."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.untrusted.bounded_files import decode, read_bytes
from cardiolens.curation.ingest.frame_records import RejectedError
from cardiolens.curation.ingest.reasons import Reason

CAVITY, MUSCLE = 1, 2  # values of the label map `scd`
_MOST_BYTES = 1 << 20
_FEWEST_POINTS = 3

Points = NDArray[np.float64]
Mask = NDArray[np.int32]


def mask_of(inner: Path, outer: Path | None, shape: tuple[int, ...]) -> Mask:
    """Draw the outlines of one frame (row, column); RejectedError if one is none, or leaves the picture."""
    mask = np.zeros(shape, dtype=np.int32)
    if outer is not None:
        mask[_inside(_points(outer, shape), shape)] = MUSCLE
    mask[_inside(_points(inner, shape), shape)] = CAVITY
    return mask


def _points(place: Path, shape: tuple[int, ...]) -> Points:
    """Read the points (column, row) of an outline."""
    try:
        lines = decode(read_bytes(place, _MOST_BYTES)).split("\n")
        rows = [[float(value) for value in line.replace(",", " ").split()] for line in lines if line.strip()]
        points = np.array(rows, dtype=np.float64)
    except (OSError, ValueError) as error:
        raise RejectedError(Reason.MASK, f"is no outline ({type(error).__name__})") from None
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < _FEWEST_POINTS:
        raise RejectedError(Reason.MASK, "is no outline of columns and rows")
    if not np.isfinite(points).all() or points.min() < 0 or (points.max(axis=0) > (shape[1], shape[0])).any():
        raise RejectedError(Reason.MASK, "is an outline that leaves the picture")
    return points


def _inside(points: Points, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return the pixels whose centres lie within a closed line, by the even-odd rule."""
    low, high = np.floor(points.min(axis=0)).astype(int), np.ceil(points.max(axis=0)).astype(int) + 1
    columns, rows = np.arange(low[0], min(high[0], shape[1])), np.arange(low[1], min(high[1], shape[0]))
    (x, y), (x_next, y_next) = points.T[:, None], np.roll(points, -1, axis=0).T[:, None]
    at = rows[:, None]
    crosses = (y > at) != (y_next > at)  # (row, edge)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = np.where(crosses, x + (at - y) * (x_next - x) / (y_next - y), -np.inf)
    odd = (crossings[:, None] > columns[None, :, None]).sum(axis=2) % 2 == 1
    inside = np.zeros(shape, dtype=bool)
    inside[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = odd
    return inside


def drawn_phases(masks: NDArray[np.int32]) -> tuple[int, int] | None:
    """Return the two phases that are drawn (slice, phase, row, column), the larger cavity as end-diastole.

    None if not two phases alone are drawn in most slices: then nothing tells which are which.
    """
    areas = (masks == CAVITY).sum(axis=(2, 3))
    n_drawn = (areas > 0).sum(axis=0)
    often = np.flatnonzero(2 * n_drawn > n_drawn.max()) if n_drawn.any() else np.array([], dtype=int)
    if len(often) != 2:
        return None
    both = (areas[:, often] > 0).all(axis=1)
    first, second = areas[both][:, often].sum(axis=0)
    if not both.any() or first == second:
        return None
    larger, smaller = often if first > second else often[::-1]
    return int(larger), int(smaller)
