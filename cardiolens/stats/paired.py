"""Tests of paired results (protocol 8.5)."""

import functools
from dataclasses import dataclass

import numpy as np

from cardiolens.stats.items import Bools, Floats

EXACT_BELOW = 25  # discordant pairs; differences
FLIPS = 10_000


@dataclass(frozen=True, slots=True)
class Test:
    """A statistic with its two-sided p-value, and how that was found."""

    statistic: float
    p: float
    method: str


def mcnemar(only_first: int, only_second: int) -> Test:
    """Of items that only one of two readers got right (McNemar 1947; Edwards' correction).

    Exact binomial below 25 such items, else chi-squared with one degree of freedom. It takes items as
    independent; `sign_flip` does not. Without discordant items p is 1.
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


def sign_flip(differences: Floats, seed: int, flips: int = FLIPS) -> Floats:
    """P-values of permutation tests of score differences (patient, test): their sums under random signs.

    One sign a patient and flip, so items of one patient may be correlated. p is
    (1 + as extreme) / (1 + flips), 1 where nothing differs. Tests of one call share their signs.
    """
    observed = np.abs(differences.sum(axis=0))
    sums = np.abs(_signs(len(differences), seed, flips) @ differences)
    # sums that differ by rounding only are equal
    extreme = (sums >= observed * (1 - 1e-9)).sum(axis=0)
    return np.asarray((1 + extreme) / (1 + flips))


@functools.lru_cache(maxsize=2)  # every pair of arms of a cohort asks for the same
def _signs(patients: int, seed: int, flips: int) -> Floats:
    drawn = np.random.default_rng(seed).integers(0, 2, (flips, patients), dtype=np.int8)
    return np.asarray(drawn * 2.0 - 1.0, np.float64)


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
    found = stats.wilcoxon(rest, method=method)
    named = "exact" if method == "exact" else "normal with tie correction"
    return Test(float(found.statistic), float(found.pvalue), named)


def kendall(first: Floats, second: Floats) -> Test:
    """Rank correlation tau-b of paired values (Kendall 1945); NaN where a side does not vary."""
    from scipy import stats

    if len(first) < 2 or len(np.unique(first)) < 2 or len(np.unique(second)) < 2:
        return Test(np.nan, np.nan, "too few distinct values")
    found = stats.kendalltau(first, second)
    return Test(float(found.statistic), float(found.pvalue), "Kendall's tau-b")
