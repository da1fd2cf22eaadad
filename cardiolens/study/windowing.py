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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError

ZEROS_SHARE = 0.01  # share of all voxels from which exact zeros are padding
BORDER_SHARE = 0.1  # share of the outermost pixels from which one value is a border
BORDER_SIDE = 8  # pixels; smaller frames are taken to have no border
MAX_LEVELS = 1 << 16  # integers in at most this many levels are counted and converted by a table
MOST_EXACT = 1 << 53  # of the integers that floats hold exactly

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
            return self.grey(frame)
        levels = np.subtract(frame, self.first, dtype=np.intp)
        grey: Grey = np.take(self.table, levels, mode="clip")  # never clips, but skips numpy's check
        return grey

    def grey(self, stored: NDArray[Any]) -> Grey:
        """Compute the grey levels of stored values."""
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
    levels = None
    if frames.dtype.kind in "iu" and highest - lowest < MAX_LEVELS and abs(highest) < MOST_EXACT:
        levels = np.arange(lowest, highest + 1)
    if window is None:
        values, at_most = _ranked(frames, levels, padding(frames, slope, inter))
        black, white = (_percentile(values, at_most, pct if slope > 0 else 100 - pct) for pct in window_pct)
        if black == white:
            black, white = (lowest, highest) if slope > 0 else (highest, lowest)
        window = black * slope + inter, white * slope + inter
    scale = GreyScale(*window, slope, inter)
    width = scale.high - scale.low
    if not (math.isfinite(width) and width > sys.float_info.min):
        raise InputError(
            f"shows {scale.low:g} as black and {scale.high:g} as white, too far apart or too near to scale; "
            "expected ordinary intensities; re-export it"
        )
    return scale if levels is None else GreyScale(*window, slope, inter, lowest, scale.grey(levels))


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


def _ranked(
    frames: NDArray[Any], levels: NDArray[np.int64] | None, fills: tuple[float, ...]
) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    """Return the stored values that are no padding in ascending order; if all are padding, all of them.

    Integers are counted at all of `levels`, frame by frame, without a copy of the volume: of them come the
    levels, and the number of voxels that are at most as large.
    """
    if levels is None:
        values = np.sort(frames, axis=None)
        imaged = values[~np.isin(values, fills)] if fills else values
        return (imaged if imaged.size else values), None
    counts = np.zeros(levels.size, np.int64)
    for frame in frames:
        counts += np.bincount(np.subtract(frame, levels[0], dtype=np.intp).ravel(), minlength=levels.size)
    imaged = np.where(np.isin(levels, fills), 0, counts)
    return levels, np.cumsum(imaged if imaged.any() else counts)


def _percentile(values: NDArray[Any], at_most: NDArray[np.int64] | None, pct: float) -> float:
    """Return a percentile of ascending values; `at_most`: of levels, how many voxels are at most as large."""
    last = (values.size if at_most is None else int(at_most[-1])) - 1
    position = last * pct / 100
    below = math.floor(position)
    ranks = np.array([below, min(below + 1, last)])
    places = ranks if at_most is None else np.searchsorted(at_most, ranks, side="right")
    low, high = map(float, values[places])
    return low + (position - below) * (high - low)
