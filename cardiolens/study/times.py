"""Find the first-pass times of a perfusion series from image intensities (protocol 5.8)."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

ONSET = 0.2  # share of the rise from baseline to peak
NOISE_FACTOR = 3.0
MAD_TO_SIGMA = 1.4826
STRONGEST_PCT = 99.0
HEART_SHARE = 0.5
FEWEST_TIMES = 8  # least length of a series in which contrast can come and go


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
    """Return the mean intensity by time in the left heart, found by contrast that comes and goes.

    `frames` holds a time series of small frames for each slice, all of one size. A pixel scores its rise from
    baseline to peak, but at most twice its drop until the end: cavities wash out, other organs keep contrast.
    Pixels with at least half of the strongest score are the heart; those that peak last are the left
    ventricle, not the right. None if contrast comes and goes nowhere.
    """
    series = np.array(frames, np.float64)
    n_times = series.shape[1]
    smooth = np.stack([series[:, max(t - 1, 0) : t + 2].mean(axis=1) for t in range(n_times)], axis=1)
    peak = smooth.max(axis=1)
    rise = peak - np.median(smooth[:, :3], axis=1)
    washed_out = peak - smooth[:, -3:].mean(axis=1)
    passed = np.minimum(rise, 2 * washed_out)
    strongest = float(np.percentile(passed, STRONGEST_PCT))
    if n_times < FEWEST_TIMES or strongest <= 0:
        return None
    heart = passed >= HEART_SHARE * strongest
    peak_time = smooth.argmax(axis=1)
    heart &= peak_time >= np.median(peak_time[heart])
    by_time = np.moveaxis(series, 1, 0)[:, heart]
    return [math.fsum(values.tolist()) / values.size for values in by_time]


def first_pass(curve: Sequence[float]) -> FirstPass:
    """Return the first-pass times of a curve of mean intensities, one per time.

    A 3-point moving average smooths the curve, with two points at either end. A curve that rises less than
    three noise levels above baseline has no bolus: t_on is 0, t_peak a third of the length.
    """
    smooth = [statistics.fmean(curve[max(t - 1, 0) : t + 2]) for t in range(len(curve))]
    base = statistics.median(smooth[:3])
    rise = max(smooth) - base
    if rise <= 0 or rise < NOISE_FACTOR * _noise(smooth):
        return FirstPass(0, len(curve) // 3, bolus_found=False)
    t_on = next(t for t, value in enumerate(smooth) if value > base + ONSET * rise)
    return FirstPass(t_on, smooth.index(max(smooth)), bolus_found=True)


def _noise(smooth: Sequence[float]) -> float:
    steps = [after - before for before, after in pairwise(smooth)]
    middle = statistics.median(steps)
    return MAD_TO_SIGMA * statistics.median(abs(step - middle) for step in steps)
