"""Hypothesis tests: adjusted p-values, equivalence, proportions, agreement, power (protocol 8.5)."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from cardiolens.score.statistics.bootstrap import Interval
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import ratio

LARGEST = 100.0  # points by which two shares can differ
MARGIN = 2.0  # points within which selection protocols are equivalent
MarginSide = Literal["within", "beyond"]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values of one family (Holm 1979); undefined ones stay NaN and do not count."""
    p = np.asarray(p_values, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return [float(value) for value in adjusted]


def false_discovery(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values by Benjamini and Hochberg (JRSS B 1995); undefined ones stay NaN and do not count."""
    from scipy import stats

    p = np.asarray(p_values, dtype=np.float64)
    is_defined = ~np.isnan(p)
    adjusted = np.full(len(p), np.nan)
    if is_defined.any():
        adjusted[is_defined] = stats.false_discovery_control(np.minimum(p[is_defined], 1))
    return [float(value) for value in adjusted]


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
    return math.nan if any(map(math.isnan, p_values)) else max(p_values)


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


def interval_p(interval_95: Interval, limit: float, patients: int) -> float:
    """The two-sided p of a value against a limit: 5 % exactly where its 95 % interval ends at the limit."""
    value = interval_95.value
    if math.isnan(interval_95.low):
        return math.nan
    reach = value - interval_95.low if value > limit else interval_95.high - value
    return 2 * _one_sided(abs(value - limit), reach, patients, 0.025)


def _one_sided(distance: float, reach: float, patients: int, tail: float = 0.05) -> float:
    """P(T > distance), where `reach` is as far as T goes with probability `tail`."""
    from scipy import stats

    if reach <= 0:
        return math.nan  # nothing varied, so nothing is known of the error
    freedom = max(patients - 1, 1)
    return float(stats.t.sf(distance / reach * stats.t.isf(tail, freedom), freedom))


def detectable_difference(
    error: float, comparisons: int = 1, power: float = 0.8, level: float = 0.05
) -> float:
    """Return the smallest true difference that a two-sided test finds with this power (normal approximation).

    The test is Holm's first step over `comparisons` comparisons, so its level is `level / comparisons`.
    `error` is the standard error of the difference; the result has its unit. `planned_error` estimates the
    error before a run.
    """
    from scipy import stats

    tail = level / max(comparisons, 1) / 2
    return error * float(stats.norm.isf(tail) + stats.norm.ppf(power))


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
    from scipy import stats

    if not trials:
        return Interval(np.nan, np.nan, np.nan)
    interval = stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
    return Interval(successes / trials, float(interval.low), float(interval.high))


def gwet_ac1(table: Floats) -> Floats:
    """Gwet's AC1 (2008) of (..., C, C): agreement beyond chance, stable where one category prevails."""
    total = table.sum(axis=(-2, -1))
    shares = ratio(table.sum(axis=-1) + table.sum(axis=-2), 2 * total[..., None])
    chance = (shares * (1 - shares)).sum(axis=-1) / max(table.shape[-1] - 1, 1)
    observed = ratio(np.trace(table, axis1=-2, axis2=-1), total)
    return ratio(observed - chance, 1 - chance)
