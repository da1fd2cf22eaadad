"""Find the first-pass times of a perfusion series from image intensities (protocol 5.8).

A first pass comes and goes: it rises within some heartbeats and washes out again. A curve that only rises
has no first pass, however high it ends. Right ventricle, left ventricle and muscle are distinguished by when
contrast reaches them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

ONSET = 0.2  # share of the rise from baseline to peak
NOISE_FACTOR = 3.0
MAD_TO_SIGMA = 1.4826
STRONGEST_PCT = 99.0
HEART_SHARE = 0.5
OF_ITS_RANGE = 0.6  # share of a blood pixel's range that comes and goes: what breathing moves in keeps more
FEWEST_TIMES = 8  # least length of a series in which contrast can come and go
SMOOTHED_SIDE = 24  # pixels; smaller frames are means over blocks as large as the heart's walls
WASH_IN, WASH_OUT = 25, 15  # heartbeats within which contrast comes, and goes
WASHED_OUT = 0.25  # share of the rise that goes again, at least
WHOLE = 0.4  # share of the curve's range that a first pass rises, at least
FIRST = 0.7  # of two passes of nearly equal height, the first counts
MOST_PASSES = 2  # of at least half the height of the strongest: breathing and noise come and go more often
BRIGHTER = 0.15  # rise / baseline, at least: contrast brightens blood by much more
APART = 2.5  # heartbeats from the right ventricle's filling to the left one's, at least
GROUP = 0.08  # share of the heart's pixels that make a ventricle
BRIGHTER_PART = 0.75  # rank of a ventricle's pixels by brightness: breathing moves the dark ones
COHERENT = 0.6  # rise of a ventricle's mean curve / its pixels' own: pixels of one ventricle peak together

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FirstPass:
    """Arrival and peak of the contrast agent, as time indices."""

    t_on: int
    t_peak: int
    bolus_found: bool


def central_mean(frame_HW: NDArray[Any]) -> float:
    """Return the mean stored intensity of rows H/4..3H/4 and columns W/4..3W/4, ends excluded.

    The sum is exact (integers) or correctly rounded (floats), so it does not depend on the machine's vector
    width.
    """
    height, width = frame_HW.shape
    centre = frame_HW[height // 4 : max(3 * height // 4, 1), width // 4 : max(3 * width // 4, 1)]
    total = (
        math.fsum(centre.ravel().tolist()) if centre.dtype.kind == "f" else int(centre.sum(dtype=np.int64))
    )
    return total / centre.size


def heart_curve(frames: Sequence[Sequence[NDArray[Any]]]) -> list[float] | None:
    """Return the intensity by time in the left ventricle, found by contrast that comes and goes.

    `frames` holds a time series of small frames for each slice, all of one size. Pixels in which at least
    half as much contrast comes and goes as in the strongest, and keep little of it, are the blood:
    muscle, liver and fat keep it. If contrast reaches these pixels in two groups, the first is the right
    ventricle, the second the left one. Of its pixels the brighter quarter counts, as breathing moves the wall
    into the others. None if contrast comes and goes nowhere, or not together.
    """
    series = np.array(frames, np.float64)
    if series.shape[1] < FEWEST_TIMES:
        return None
    side = 3 if min(series.shape[2:]) >= SMOOTHED_SIDE else 1
    steady = ndimage.uniform_filter(_smoothed(series, axis=1), (1, 1, side, side))
    passed = _passed(steady, axis=1)
    height = passed.max(axis=1)
    arrival = (passed >= FIRST * height[:, None]).argmax(axis=1)
    strongest = float(np.percentile(height, STRONGEST_PCT))
    if strongest <= 0:
        return None
    heart = (height >= HEART_SHARE * strongest) & (height >= OF_ITS_RANGE * np.ptp(steady, axis=1))
    if not heart.any():
        return None
    by_time = np.moveaxis(series, 1, 0)
    for group in filter(_is_solid, _latest_first(heart, arrival)):
        curve = [_brighter(values) for values in by_time[:, group]]
        together = float(_passed(_smoothed(np.array(curve), axis=0), axis=0).max())
        if first_pass(curve).bolus_found and together >= COHERENT * float(np.median(height[group])):
            return curve
    return None


def _brighter(values: Floats) -> float:
    """Return the value that three quarters of the pixels do not exceed: one of them, unrounded."""
    return float(np.sort(values)[int(BRIGHTER_PART * (values.size - 1))])


def _is_solid(group: NDArray[np.bool_]) -> bool:
    """Return whether pixels (slice, row, column) form cavities, not rims that breathing moves in and out."""
    cavities = ndimage.binary_opening(group, np.ones((1, 3, 3)))
    return bool(2 * cavities.sum() >= group.sum())


def _latest_first(heart: NDArray[np.bool_], arrival: NDArray[np.intp]) -> list[NDArray[np.bool_]]:
    """Return the pixels after the best divide of the arrivals, then those before it; all if there is none."""
    times = np.sort(arrival[heart])
    fewest = max(int(GROUP * times.size), 1)
    divides = [
        (k * (times.size - k) * float(times[k:].mean() - times[:k].mean()) ** 2, int(times[k]))
        for k in range(fewest, times.size - fewest + 1)
        if k < times.size and times[k] > times[k - 1]
    ]
    if not divides:
        return [heart]
    _, divide = max(divides)
    late, early = heart & (arrival >= divide), heart & (arrival < divide)
    if np.median(arrival[late]) - np.median(arrival[early]) < APART:
        return [heart]
    return [late, early]


def first_pass(curve: Sequence[float]) -> FirstPass:
    """Return the first-pass times of a curve of mean intensities, one per time.

    A 3-point moving average smooths the curve, with two points at either end. The peak is where most comes
    within 25 beats and goes again within 15. A rise is no bolus if it is below three noise levels, two fifths
    of the curve's range or a seventh of the baseline, if less than a quarter of it goes again, or if it comes
    and goes more than twice: then t_on is 0, t_peak a third of the length.
    """
    smooth = _smoothed(np.array(curve, np.float64), axis=0)
    passed = _passed(smooth, axis=0)
    t_peak = int(np.argmax(passed >= FIRST * passed.max()))
    while t_peak + 1 < len(smooth) and smooth[t_peak + 1] > smooth[t_peak]:
        t_peak += 1
    peak = smooth[t_peak]
    base = smooth[max(t_peak - WASH_IN, 0) : t_peak + 1].min()
    washed_out = peak - smooth[t_peak : t_peak + WASH_OUT + 1].min()
    rise = peak - base
    if (
        rise <= 0
        or rise < max(NOISE_FACTOR * _noise(smooth), WHOLE * np.ptp(smooth), BRIGHTER * abs(base))
        or washed_out < WASHED_OUT * rise
        or _passes(passed) > MOST_PASSES
    ):
        return FirstPass(0, len(curve) // 3, bolus_found=False)
    below = np.flatnonzero(smooth[:t_peak] <= base + ONSET * rise)
    return FirstPass(int(below[-1]) + 1 if below.size else 0, t_peak, bolus_found=True)


def _smoothed(series: Floats, axis: int) -> Floats:
    """Return the moving average of three times, of two at either end."""
    moved = np.moveaxis(series, axis, 0)
    means = np.stack([moved[max(t - 1, 0) : t + 2].mean(axis=0) for t in range(len(moved))])
    smooth: Floats = np.moveaxis(means, 0, axis)
    return smooth


def _passed(smooth: Floats, axis: int) -> Floats:
    """Return how much has come before each time, but at most twice what goes after it."""
    before, after = WASH_IN // 2, -(WASH_OUT // 2)
    come = smooth - ndimage.minimum_filter1d(smooth, 2 * before + 1, axis, mode="nearest", origin=before)
    washed_out = smooth - ndimage.minimum_filter1d(smooth, 1 - 2 * after, axis, mode="nearest", origin=after)
    passed: Floats = np.minimum(come, 2 * washed_out)
    return passed


def _passes(passed: Floats) -> int:
    """Return how often at least half as much comes and goes as in the strongest pass."""
    high = np.concatenate([[False], passed >= HEART_SHARE * passed.max()])
    return int(np.count_nonzero(high[1:] & ~high[:-1]))


def _noise(smooth: Floats) -> float:
    steps = np.diff(smooth)
    return float(MAD_TO_SIGMA * np.median(np.abs(steps - np.median(steps))))
