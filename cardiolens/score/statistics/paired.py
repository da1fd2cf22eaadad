"""Tests of paired results (protocol 8.5)."""

from dataclasses import dataclass

import numpy as np

from cardiolens.score.statistics.items import Bools, Floats

EXACT_BELOW = 25  # discordant pairs; differences


@dataclass(frozen=True, slots=True)
class Test:
    """A statistic with its two-sided p-value, and the method behind it."""

    statistic: float
    p: float
    method: str


def mcnemar(only_first: int, only_second: int) -> Test:
    """Test of the items that only one of two readers got right (McNemar 1947; Edwards' correction).

    Exact binomial below 25 such items, else chi-squared with one degree of freedom. It takes items as
    independent; `swap_test.swap_p` does not. Without discordant items p is 1.
    """
    from scipy import stats

    discordant = only_first + only_second
    if discordant < EXACT_BELOW:
        p = stats.binomtest(only_first, discordant).pvalue if discordant else 1.0
        return Test(float(min(only_first, only_second)), float(p), "exact binomial")
    return mcnemar_chi2(only_first, only_second)


def mcnemar_chi2(only_first: int, only_second: int) -> Test:
    """The large-sample form of McNemar's test."""
    from scipy import stats

    chi2 = (abs(only_first - only_second) - 1) ** 2 / (only_first + only_second)
    return Test(chi2, float(stats.chi2.sf(chi2, 1)), "chi-squared with continuity correction")


def mcnemar_of(first: Bools, second: Bools) -> Test:
    """McNemar's test of two readers' correctness on the same items in the same order."""
    return mcnemar(int((first & ~second).sum()), int((second & ~first).sum()))


def wilcoxon(differences: Floats) -> Test:
    """Signed rank test (Wilcoxon 1945): zeros dropped, midranks; the statistic is the smaller rank sum.

    Exact up to 25 differences without ties, else normal with tie correction; NaN without a difference.
    """
    from scipy import stats

    rest = differences[differences != 0]
    if not len(rest):
        return Test(np.nan, np.nan, "no difference")
    tied = len(np.unique(np.abs(rest))) < len(rest)
    method = "exact" if len(rest) <= EXACT_BELOW and not tied else "approx"
    result = stats.wilcoxon(rest, method=method)
    description = "exact" if method == "exact" else "normal with tie correction"
    return Test(float(result.statistic), float(result.pvalue), description)


def kendall(first: Floats, second: Floats) -> Test:
    """Rank correlation tau-b of paired values (Kendall 1945); NaN where a side does not vary."""
    from scipy import stats

    if len(first) < 2 or len(np.unique(first)) < 2 or len(np.unique(second)) < 2:
        return Test(np.nan, np.nan, "too few distinct values")
    result = stats.kendalltau(first, second)
    return Test(float(result.statistic), float(result.pvalue), "Kendall's tau-b")
