"""Window intensities to 8-bit grey: one window per volume, between two percentiles (protocol 1.4).

Percentiles exclude padding: exact zeros, if they are at least 1 % of a volume, and a
constant border, i.e. one value in at least 10 % of the outermost pixels. Voxels of these values are never
ranked, wherever they lie, but are shown like all others.

Percentile q of n sorted values is at position (n - 1) * q / 100, interpolated linearly between its two
neighbours. A value v is shown as floor((v - low) * (255 / (high - low)) + 1/2), clipped to 0..255: a half
rounds up. Values are counted or sorted, never summed, and the few float operations are single IEEE double
operations, so a volume gives the same bytes on every machine.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError

ZEROS_SHARE = 0.01  # share of all voxels from which exact zeros are padding
BORDER_SHARE = 0.1  # share of the outermost pixels from which one value is a border
BORDER_SIDE = 8  # pixels; smaller frames are taken to have no border
MAX_LEVELS = 1 << 16  # integers in at most this many levels are counted and converted by a table

Grey = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class GreyScale:
    """Conversion of one volume's stored values to grey; intensities `low` and `high` become 0 and 255."""

    low: float
    high: float
    slope: float
    inter: float
    first: int = 0  # stored value of the first table entry
    table: Grey | None = None

    def show(self, frame: NDArray[Any]) -> Grey:
        """Convert a frame of stored values to grey levels, uint8 of the same shape."""
        if self.table is None:
            return self._grey(frame)
        levels = np.subtract(frame, self.first, dtype=np.intp)
        grey: Grey = np.take(self.table, levels, mode="clip")  # never clips, but skips numpy's check
        return grey

    def tabulated(self, first: int, last: int) -> "GreyScale":
        """Return a copy of this scale with a table for the integers first..last."""
        table = self._grey(np.arange(first, last + 1))
        return GreyScale(self.low, self.high, self.slope, self.inter, first, table)

    def _grey(self, stored: NDArray[Any]) -> Grey:
        values = stored.astype(np.float64) * self.slope + self.inter
        levels = np.floor((values - self.low) * (255.0 / (self.high - self.low)) + 0.5)
        return np.clip(levels, 0, 255).astype(np.uint8)


def grey_scale(
    frames: NDArray[Any],
    window_pct: tuple[float, float],
    slope: float,
    inter: float,
    window: tuple[float, float] | None = None,
) -> GreyScale:
    """Return the grey scale of a volume of stored values; intensity = stored * slope + inter.

    `window` gives the intensities shown as black and white, instead of percentiles. If both percentiles
    coincide in a volume that is not constant, the window spans all values.
    InputError for NaN, infinite or constant values.
    """
    _check_finite(frames)
    lowest, highest = frames.min().item(), frames.max().item()
    if lowest == highest:
        raise InputError(
            f"is constant ({lowest * slope + inter:g}); expected an image with contrast; re-export the volume"
        )
    counted = frames.dtype.kind in "iu" and highest - lowest < MAX_LEVELS
    if window is None:
        rank = partial(_counted, lowest=lowest, highest=highest) if counted else _selected
        ends = _ends(rank(frames, padding(frames, slope, inter)), window_pct, slope)
        if ends[0] == ends[1]:
            ends = [lowest, highest] if slope > 0 else [highest, lowest]
        window = ends[0] * slope + inter, ends[1] * slope + inter
    scale = GreyScale(*window, slope, inter)
    width = scale.high - scale.low
    if not (math.isfinite(width) and width > sys.float_info.min):
        raise InputError(
            f"shows {scale.low:g} as black and {scale.high:g} as white, too far apart or too near to scale; "
            "expected ordinary intensities; re-export it"
        )
    return scale.tabulated(lowest, highest) if counted else scale


def _check_finite(frames: NDArray[Any]) -> None:
    if frames.dtype.kind != "f":
        return
    bad = sum(frame.size - int(np.isfinite(frame).sum()) for frame in frames)
    if bad:
        raise InputError(
            f"{bad} of {frames.size} voxels are NaN or infinite; expected finite intensities; re-export it"
        )


def padding(frames: NDArray[Any], slope: float, inter: float) -> tuple[float, ...]:
    """Return the stored values of padding: exact zeros and the value of a constant border."""
    zero = -inter / slope
    n_zeros = sum(int(np.count_nonzero(frame == zero)) for frame in frames)
    fills = {zero} if n_zeros >= ZEROS_SHARE * frames.size else set()
    if min(frames.shape[1:]) >= BORDER_SIDE:
        sides = (frames[:, 0], frames[:, -1], frames[:, 1:-1, 0], frames[:, 1:-1, -1])
        values, counts = np.unique(np.concatenate([side.ravel() for side in sides]), return_counts=True)
        if counts.max() >= BORDER_SHARE * counts.sum():
            fills.add(float(values[counts.argmax()]))
    return tuple(sorted(fills))


@dataclass(frozen=True, slots=True)
class Ranked:
    """Order statistics of stored values: their number, and the k-th smallest, k from 0."""

    n: int
    at: Callable[[int], float]

    def percentile(self, pct: float) -> float:
        position = (self.n - 1) * pct / 100
        below = math.floor(position)
        low, high = self.at(below), self.at(min(below + 1, self.n - 1))
        return low + (position - below) * (high - low)


def _ends(ranked: Ranked, window_pct: tuple[float, float], slope: float) -> list[float]:
    """Return the stored values shown as black and white."""
    percentages = window_pct if slope > 0 else (100 - window_pct[0], 100 - window_pct[1])
    return [ranked.percentile(pct) for pct in percentages]


def _counted(frames: NDArray[Any], fills: tuple[float, ...], lowest: int, highest: int) -> Ranked:
    """Return order statistics from a histogram filled frame by frame, without a copy of the volume."""
    counts = np.zeros(highest - lowest + 1, np.int64)
    for frame in frames:
        counts += np.bincount(np.subtract(frame, lowest, dtype=np.intp).ravel(), minlength=counts.size)
    remaining = counts.copy()
    for fill in fills:
        if fill == int(fill) and lowest <= fill <= highest:
            remaining[int(fill) - lowest] = 0
    counts = remaining if remaining.any() else counts
    at_most = np.cumsum(counts)
    return Ranked(int(at_most[-1]), lambda k: float(lowest + int(np.searchsorted(at_most, k, side="right"))))


def _selected(frames: NDArray[Any], fills: tuple[float, ...]) -> Ranked:
    """Return order statistics by sorting, for floats and integers of a wide range."""
    ordered = np.sort(frames, axis=None)
    remaining = ordered[~np.isin(ordered, fills)] if fills else ordered
    ordered = remaining if remaining.size else ordered
    return Ranked(ordered.size, lambda k: float(ordered[k]))
