"""Hypothesis tests: swapped patients, adjusted p, margins, proportions, ranks, power (protocol 8.5)."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import scipy  # whose parts are loaded when they are used: `stats` takes half a second
from numpy.typing import NDArray

from cardiolens.score.statistics.bootstrap import Interval
from cardiolens.score.statistics.counting import Key
from cardiolens.score.statistics.items import Floats

LARGEST = 100.0  # points by which two shares can differ
MARGIN = 2.0  # points within which arms are equivalent
MarginSide = Literal["within", "beyond"]
Coins = NDArray[np.float32]  # (patient, swap): 1 where a patient stays, 0 where it changes arms
StatisticsOfSums = Callable[[Floats], dict[Key, Floats]]  # from sums (cell, unit)

SWAPS = 10_000
# the tail of a sum with random signs is at most so many times that of a normal one (Pinelis 1994)
_PINELIS = 3.178


def adjusted(p_values: Sequence[float], method: Literal["holm", "fdr_bh"] = "holm") -> Floats:
    """Adjusted p-values of one family; undefined ones stay NaN and do not count.

    Holm (1979), or Benjamini and Hochberg (1995). Not by statsmodels: its function collects the garbage of
    the whole process at each call.
    """
    p_adjusted = np.array(p_values, dtype=np.float64)
    is_defined = ~np.isnan(p_adjusted)
    p = np.minimum(p_adjusted[is_defined], 1)
    if method == "holm":
        order = np.argsort(p)
        steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
        p[order] = np.minimum(steps, 1)
    elif len(p):
        p = scipy.stats.false_discovery_control(p)
    p_adjusted[is_defined] = p
    return p_adjusted


def margin_side(interval_90: Interval, margin: float = MARGIN) -> MarginSide | None:
    """The side of a margin on which all of a 90 % interval lies (two one-sided tests at 5 %).

    None if it crosses a margin or is undefined.
    """
    low, high = interval_90.low, interval_90.high
    if -margin < low and high < margin:
        return "within"
    return "beyond" if low >= margin or high <= -margin else None


def equivalence_p(interval_90: Interval, patients: int, margin: float = MARGIN) -> float:
    """The larger p of two one-sided tests, at 5 % exactly where the 90 % interval lies inside the margin.

    The interval gives a standard error on each side, with the t distribution of n - 1 patients.
    """
    value, low, high = interval_90.value, interval_90.low, interval_90.high
    if math.isnan(low):
        return math.nan
    above, below = margin - value, value + margin
    p_values = _one_sided(above, high - value, patients), _one_sided(below, value - low, patients)
    return float(np.max(p_values))  # NaN if one of them is


def beyond_p(interval_90: Interval, patients: int, margin: float = MARGIN) -> float:
    """The two-sided p of the null that a difference lies within the margin: how sure it is that it is beyond.

    The null holds a margin on either side, so both one-sided tests share 5 %; 1 where the observed difference
    is within the margin.
    """
    value, low, high = interval_90.value, interval_90.low, interval_90.high
    if math.isnan(low):
        return math.nan
    reach = value - low if value > 0 else high - value
    beyond = abs(value) - margin
    return 1.0 if beyond <= 0 else 2 * _one_sided(beyond, reach, patients)  # at most 1, or NaN


def row_p(row: Mapping[str, Any], patients: float) -> float:
    """The two-sided p of a difference against zero: 5 % exactly where its 95 % interval ends there."""
    value = row["difference"]
    if math.isnan(row["low"]):
        return math.nan
    reach = value - row["low"] if value > 0 else row["high"] - value
    return 2 * _one_sided(abs(value), reach, int(patients), 0.025)


def _one_sided(distance: float, reach: float, patients: int, tail: float = 0.05) -> float:
    """P(T > distance), where `reach` is as far as T goes with probability `tail`."""
    if reach <= 0:
        return math.nan  # nothing varied, so nothing is known of the error
    freedom = max(patients - 1, 1)
    return float(scipy.stats.t.sf(distance / reach * scipy.stats.t.isf(tail, freedom), freedom))


def detectable_difference(
    error: float, comparisons: int = 1, power: float = 0.8, level: float = 0.05
) -> float:
    """Return the smallest true difference that a two-sided test finds with this power (normal approximation).

    The test is Holm's first step over `comparisons` comparisons, so its level is `level / comparisons`.
    `error` is the standard error of the difference; the result has its unit. `planned_error` estimates the
    error before a run.
    """
    tail = level / max(comparisons, 1) / 2
    return error * float(scipy.stats.norm.isf(tail) + scipy.stats.norm.ppf(power))


def difference_words(points: float) -> str:
    """A detectable difference of shares in words; none is above 100 points."""
    return f"a difference of {points:.1f} points" if points <= LARGEST else "no difference"


def planned_error(
    patients: int, items_per_patient: float, agreement: float = 0.3, within: float = 0.1, share: float = 0.5
) -> float:
    """The expected standard error, in points, of a paired difference of accuracy, for planning.

    `share` is the accuracy expected, `agreement` the correlation of both answers to an item, `within` that of
    the differences of two items of a patient (design effect 1 + (m - 1) within; Kish 1965).
    """
    if patients < 1 or items_per_patient <= 0:
        return math.nan
    variance = 2 * share * (1 - share) * (1 - agreement)
    effect = 1 + max(items_per_patient - 1, 0) * within
    return 100 * math.sqrt(variance * effect / (patients * items_per_patient))


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Score interval of a proportion of independent trials (Wilson 1927); NaN without trials."""
    if not trials:
        return Interval(np.nan, np.nan, np.nan)
    interval = scipy.stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
    return Interval(successes / trials, float(interval.low), float(interval.high))


def kendall(first: Floats, second: Floats) -> tuple[float, float]:
    """Rank correlation tau-b of paired values (Kendall 1945) with its p; NaN where a side does not vary."""
    if len(first) < 2:
        return math.nan, math.nan
    result = scipy.stats.kendalltau(first, second)
    return float(result.statistic), float(result.pvalue)


@functools.lru_cache(maxsize=2)  # every pair of arms of a cohort asks for the same
def coins(patients: int, seed: int, swaps: int = SWAPS) -> Coins:
    """Draw seeded swaps of whole patients."""
    flips = np.random.default_rng(seed).integers(0, 2, (swaps, patients), dtype=np.int8)
    return np.ascontiguousarray(flips.T, np.float32)


def swap_p(cells: Floats, versus: Floats, statistics_of: StatisticsOfSums, swaps: Coins) -> dict[Key, float]:
    """Two-sided p-values of the difference of every statistic computed from sums of cells.

    p is (1 + as extreme) / (1 + swaps). Where no swap is as extreme it is the bound of Pinelis on the tail,
    since 10,000 swaps could not pass Holm over more than 500 comparisons. A swap that leaves a statistic
    undefined counts as extreme; where nothing differs p is 1.
    """
    change, total = cells - versus, (cells + versus).sum(axis=1, keepdims=True)
    moved = change.any(axis=0)
    first = np.repeat(versus.sum(axis=1, keepdims=True), swaps.shape[1], axis=1)
    rows = np.flatnonzero(change.any(axis=1))
    # whole numbers below 2**24, so float32 is exact
    first[rows] += change[np.ix_(rows, moved)].astype(np.float32) @ swaps[moved]
    ours, theirs = (
        statistics_of(cells.sum(axis=1, keepdims=True)),
        statistics_of(versus.sum(axis=1, keepdims=True)),
    )
    ours_swapped, theirs_swapped = statistics_of(first), statistics_of(total - first)
    fewest = 2.0 ** (1 - int(moved.sum()))
    return {
        key: _p(float((ours[key] - theirs[key])[0]), ours_swapped[key] - theirs_swapped[key], fewest)
        for key in ours
    }


def _p(observed: float, swapped: Floats, fewest: float) -> float:
    if np.isnan(observed):
        return float("nan")
    below = np.abs(swapped) < abs(observed) * (1 - 1e-9)  # those that differ by rounding only are equal
    extreme = len(swapped) - int(below.sum())
    p = (1 + extreme) / (1 + len(swapped))
    return p if extreme else min(p, max(fewest, _tail_bound(observed, swapped)))


def _tail_bound(observed: float, swapped: Floats) -> float:
    spread = float(np.sqrt(np.mean(swapped**2)))
    return 2 * _PINELIS * float(scipy.stats.norm.sf(abs(observed) / spread)) if spread else 0.0
