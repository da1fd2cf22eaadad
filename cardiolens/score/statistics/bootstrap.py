"""Intervals: a cluster bootstrap by patient, limits near the boundary, and how many patients they need.

A bootstrap shows only the errors that the cohort has: of 20 patients who are all right it says "100 to 100".
Where resamples hardly vary, shares near the boundary and arms that hardly differ get other limits.

| patients | rarer class of AUROC | printed | a claim may rest on it |
|---|---|---|---|
| below 8 | any | the number and its n | no |
| 8 or more | below 10 | the number and its n | no |
| 8 to 19 | 10 or more | with an interval | no |
| 20 or more | 10 or more | with an interval | yes |

Tables of a page follow this table. What is read as a result (the page's cards, the terminal,
leaderboards) prints an interval only where a claim may rest on it.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # whose parts are loaded when they are used: `stats` takes half a second

from cardiolens.score.statistics.items import Floats, Ints

_RESAMPLES, _SEED = 2000, 2026  # of agreement and of published scores, which no sweep sets
Ends = tuple[float, float]

# Errors, successes or differing answers, in effective items, below which resamples are not relied on. Near 0
# or 1 the bootstrap of a share covered 91 % with 27 of them at a design effect of 3, in the middle it covers.
FEWEST_EVENTS = 10
_FEWEST_NEAR = 30
# Design effect over patients that is assumed where too few events show it; never more than the items of a
# patient. Estimated from two or three errors it is noise, and none can be estimated without an error.
DESIGN_EFFECT = 3.0
# From this share on both sides, the design effect is estimated even with few events (Korn and Graubard).
_MIDDLE = 0.2
# Of fewer patients a bootstrap has few distinct resamples: of 5, 126 in all, and an interval of nominal 95 %
# covered 23 % at a truth of 95 %.
FEWEST_FOR_INTERVAL = 8
# Of fewer, the percentiles of resamples are too rough for a claim, however they are widened.
FEWEST_FOR_CLAIM = 20
# Patients of the rarer class that an AUROC needs: with 3, all resamples that hold the same three patients
# agree, and a coin was "better than a coin" in 58 of 60 simulated runs.
FEWEST_OF_CLASS = 10


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with the ends of its interval; the ends are NaN where there is no interval."""

    value: float
    low: float
    high: float
    how: str = ""  # how it was found, where not by the bootstrap; or why there is none


def resampling_weights(patients: int, resamples: int, seed: int, hospitals: Ints | None = None) -> Floats:
    """Count each patient in each resample: (1 + resamples, patients); row 0 is the cohort itself.

    With `hospitals`, codes from 0 of the patients' hospitals, whole hospitals are drawn.

    Every statistic of every arm uses these same weights, so differences between arms are paired.
    """
    if patients == 0:
        return np.ones((1 + resamples, 0))
    units = patients if hospitals is None else int(hospitals.max()) + 1
    counts = np.random.default_rng(seed).multinomial(units, np.full(units, 1 / units), size=resamples)
    counts = counts if hospitals is None else counts[:, hospitals]
    return np.concatenate([np.ones((1, patients)), counts.astype(np.float64)])


def cluster_weights(n: int) -> Floats:
    """Return how often each of n cases or patients is drawn, by resample; of a single one there are none."""
    return resampling_weights(n, _RESAMPLES if n > 1 else 0, _SEED)


def cluster_interval(values: Floats, n: int) -> Interval:
    """Return the interval of a statistic resampled by `cluster_weights`; of a single case it has no ends."""
    return percentile(values, patients=n if n > 1 else math.inf)


def percentile(values: Floats, level: float = 0.95, patients: float = math.inf) -> Interval:
    """The observed value (entry 0) and the expanded percentile interval of the resampled ones.

    The percentiles are widened to those of a t interval of so many patients: plain ones are too narrow by
    sqrt((n - 1) / n) and by normal instead of t quantiles (Hesterberg, Am Stat 2015;69:371-386). Without
    `patients` they are plain. Resamples with an undefined statistic are dropped. Resamples of a single
    patient hold no information: pass `values[:1]` then, and the ends are NaN.
    """
    resampled = values[1:][~np.isnan(values[1:])]
    if len(resampled) == 0 or np.isnan(values[0]):
        return Interval(float(values[0]), np.nan, np.nan)
    tail = _tail(level, patients)
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return Interval(float(values[0]), float(low), float(high))


def over_hospitals(values: Floats, level: float, hospitals: int, inflation: float) -> Interval:
    """The observed value (entry 0) and a t interval from the variance of resamples of whole hospitals.

    Few hospitals have few distinct resamples, and percentiles end at the extreme hospital: with five they
    covered 92 to 93 % of 95. `inflation` is that of the variance (`variance_inflation`). One hospital has no
    interval.
    """
    resampled = values[1:][~np.isnan(values[1:])]
    if len(resampled) < 2 or np.isnan(values[0]) or hospitals < 2:
        return Interval(float(values[0]), np.nan, np.nan)
    error = math.sqrt(float(resampled.var()) * inflation)
    reach = error * float(scipy.stats.t.isf((1 - level) / 2, hospitals - 1))
    return Interval(float(values[0]), float(values[0]) - reach, float(values[0]) + reach)


def variance_inflation(sizes: Ints) -> float:
    """How much larger the variance of a mean over hospitals of these sizes is than that of its resamples.

    Of G equal hospitals G / (G - 1). A large one pulls the mean toward itself, so that resamples vary less:
    the expected variance is sum w^2 (1 - 2 w + sum w^2) of shares w, where sum w^2 is true.
    """
    shares = sizes / sizes.sum()
    squares = float((shares**2).sum())
    expected = float((shares**2 * (1 - 2 * shares + squares)).sum())
    return squares / expected if expected > 0 else math.inf


@functools.lru_cache(maxsize=4096)
def _tail(level: float, patients: float) -> float:
    tail = (1 - level) / 2
    if math.isinf(patients):
        return tail
    reach = math.sqrt(patients / (patients - 1)) * scipy.stats.t.isf(tail, patients - 1)
    return float(scipy.stats.norm.sf(reach))


def joint_freedom(variances: Floats, freedom: Floats) -> float:
    """Degrees of freedom of a sum of variances, each with its own (Satterthwaite 1946)."""
    return float(variances.sum() ** 2 / (variances**2 / freedom).sum())


def effective_patients(class_sizes: Sequence[Ints]) -> float:
    """Number of patients that a mean over questions of means over classes is worth, by the classes' sizes.

    One more than the degrees of freedom of its variance (Welch 1947), where a class of n items has a variance
    in proportion to 1 / n, known with n - 1 degrees of freedom (1 for one item).
    """
    sizes = [np.asarray(sizes, np.float64) for sizes in class_sizes]
    variances = np.concatenate([1 / (of_question * len(of_question) ** 2) for of_question in sizes])
    return 1 + joint_freedom(variances, np.maximum(np.concatenate(sizes) - 1, 1))


def effective_items(class_sizes: Sequence[Ints]) -> float:
    """Number of items that a mean over questions of means over classes is worth, by the classes' sizes.

    As many items in one class would give a mean of the same variance; with equal classes, as many as there
    are. Unlike `effective_patients` it says how large that variance is, not how well it is known.
    """
    sizes = [np.asarray(sizes, np.float64) for sizes in class_sizes]
    variances = [float((1 / of_question).sum()) / len(of_question) ** 2 for of_question in sizes]
    return len(sizes) ** 2 / sum(variances)


@dataclass(frozen=True, slots=True)
class Sample:
    """How much a statistic rests on; where classes weigh alike, small ones make it worth less."""

    items: float
    patients: float
    effective_items: float  # whose mean would vary as much
    effective_patients: float  # by whom the variance is known

    @property
    def assumed_effect(self) -> float:
        """The design effect over patients where too few events show it."""
        return min(max(self.items / self.patients, 1.0), DESIGN_EFFECT)


def share_ends(value: float, variance: float, sample: Sample, tail: float) -> Ends | None:
    """Clopper and Pearson's limits of a share of an effective number of items; None away from the boundary.

    The effective number is value (1 - value) / variance (Korn and Graubard, Survey Methodology
    1998;24:193-201), at most that of the sample; near 0 or 1, at most that over the assumed design effect.
    At 0 and 1 it is that most: a variance there is of other items that resamples bring in, as in a risk at
    some coverage. All are fractions.
    """
    rarer = min(value, 1 - value)
    estimated = value * (1 - value) / variance if rarer > 0 and variance > 0 else math.inf
    if rarer >= _MIDDLE:
        narrower = float(scipy.stats.norm.isf(tail)) / _t_quantile(tail, sample.patients)
        effective = min(sample.effective_items, estimated * narrower**2)
        is_near = min(sample.items, estimated * sample.items / sample.effective_items) * rarer < FEWEST_EVENTS
    else:
        most = sample.effective_items / sample.assumed_effect
        effective, is_near = min(most, estimated), most * rarer < _FEWEST_NEAR
    if not is_near:
        return None
    right, wrong = effective * value, effective * (1 - value)
    low = float(scipy.special.betaincinv(right, wrong + 1, tail)) if right > 0 else 0.0
    high = float(scipy.special.betaincinv(right + 1, wrong, 1 - tail)) if wrong > 0 else 1.0
    return low, high


def difference_ends(value: float, variance: float, sample: Sample, tail: float) -> Ends | None:
    """Limits of a paired difference by a score test; None where enough answers differ.

    Two arms that differ by d differ on at least |d| of the items, so a true difference x has a
    variance of at least |x| (1 - |x|) / n, as in Tango's score interval (Stat Med 1998;17:891-908), with n
    the effective items over the assumed design effect. The limits are those x that are a t quantile from the
    observed difference.
    """
    if variance * sample.items**2 / sample.assumed_effect >= FEWEST_EVENTS:
        return None
    effective = sample.effective_items / sample.assumed_effect
    reach = _t_quantile(tail, sample.effective_patients)
    high = max(value + reach * math.sqrt(variance), _score_limit(value, effective, reach))
    low = min(value - reach * math.sqrt(variance), -_score_limit(-value, effective, reach))
    return max(low, -1.0), min(high, 1.0)


def _t_quantile(tail: float, patients: float) -> float:
    return float(scipy.stats.t.isf(tail, max(patients - 1, 1)))


def _score_limit(value: float, effective: float, reach: float) -> float:
    """The larger x with (x - value)^2 = reach^2 x (1 - x) / effective; -1 if there is none."""
    ratio = reach**2 / effective
    root = (2 * value + ratio) ** 2 - 4 * (1 + ratio) * value**2
    return -1.0 if root < 0 else (2 * value + ratio + math.sqrt(root)) / (2 * (1 + ratio))


def resampled_variance(values: Floats, patients: float) -> float:
    """Variance of a statistic over its resamples (entries 1 on), times n / (n - 1) of the patients."""
    resampled = values[1:][~np.isnan(values[1:])]
    return float(resampled.var()) * patients / max(patients - 1, 1) if len(resampled) else math.nan


def reason_for_none(patients: int, of_rarer_class: int | None = None) -> str:
    """Why a statistic of so many patients has no interval; empty if it may have one."""
    if patients < FEWEST_FOR_INTERVAL:
        return f"no interval: fewer than {FEWEST_FOR_INTERVAL} patients"
    if of_rarer_class is not None and of_rarer_class < FEWEST_OF_CLASS:
        return f"no interval: fewer than {FEWEST_OF_CLASS} patients of the rarer class"
    return ""
