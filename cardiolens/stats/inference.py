"""Pieces of inference: families of tests, equivalence, proportions, ranks, power (protocol 8.5)."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from cardiolens.stats.bootstrap import Interval
from cardiolens.stats.items import Floats
from cardiolens.stats.metrics import ratio

MARGIN = 2.0  # points within which selection protocols are equivalent
Support = Literal["supported", "not supported", "cannot tell"]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values of one family (Holm 1979); undefined ones stay NaN and do not count."""
    p = np.asarray(p_values, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return [float(value) for value in adjusted]


def equivalent(interval_90: Interval, margin: float = MARGIN) -> Support:
    """Whether a difference is within a margin, by its 90 % interval (two one-sided tests at 5 %).

    `not supported` where all of it lies outside, `cannot tell` where it reaches across or is undefined.
    """
    low, high = interval_90.low, interval_90.high
    if -margin < low and high < margin:
        return "supported"
    return "not supported" if low >= margin or high <= -margin else "cannot tell"


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Score interval of a proportion of independent trials (Wilson 1927); NaN without trials."""
    from scipy import stats

    if not trials:
        return Interval(np.nan, np.nan, np.nan)
    found = stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
    return Interval(successes / trials, float(found.low), float(found.high))


def gwet_ac1(table: Floats) -> Floats:
    """Agreement beyond chance that stays stable where one category prevails (Gwet 2008), of (..., C, C)."""
    total = table.sum(axis=(-2, -1))
    shares = ratio(table.sum(axis=-1) + table.sum(axis=-2), 2 * total[..., None])
    chance = (shares * (1 - shares)).sum(axis=-1) / max(table.shape[-1] - 1, 1)
    observed = ratio(np.trace(table, axis1=-2, axis2=-1), total)
    return ratio(observed - chance, 1 - chance)


def minimum_detectable(standard_error: float, power: float = 0.8, level: float = 0.05) -> float:
    """The smallest true difference that a two-sided test finds with this power (normal approximation)."""
    from scipy import stats

    return standard_error * float(stats.norm.isf(level / 2) + stats.norm.ppf(power))


def standard_error(values: Floats) -> float:
    """Standard deviation of the resampled values (entries 1 on) of a statistic; NaN for fewer than two."""
    drawn = values[1:][~np.isnan(values[1:])]
    return float(drawn.std(ddof=1)) if len(drawn) > 1 else float("nan")
