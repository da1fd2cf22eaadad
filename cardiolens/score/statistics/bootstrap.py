"""Cluster bootstrap by patient as array arithmetic (protocol 8.5)."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cardiolens.score.statistics.items import Floats, Ints

_RESAMPLES, _SEED = 2000, 2026  # of agreement and of published scores, which no sweep sets


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

    Few hospitals have few distinct resamples, whose percentiles end at the extreme hospital: with five they
    covered 92 to 93 % of 95. `inflation` is that of the variance (`variance_inflation`). One hospital has no
    interval.
    """
    from scipy import stats

    resampled = values[1:][~np.isnan(values[1:])]
    if len(resampled) < 2 or np.isnan(values[0]) or hospitals < 2:
        return Interval(float(values[0]), np.nan, np.nan)
    error = math.sqrt(float(resampled.var()) * inflation)
    reach = error * float(stats.t.isf((1 - level) / 2, hospitals - 1))
    return Interval(float(values[0]), float(values[0]) - reach, float(values[0]) + reach)


def variance_inflation(sizes: Ints) -> float:
    """How much larger the variance of a mean over hospitals of these sizes is than that of its resamples.

    Of G equal hospitals G / (G - 1). A large one pulls the mean toward itself, so that resamples vary less:
    the expected variance is sum w^2 (1 - 2 w + sum w^2) of shares w, where sum w^2 is true.
    """
    shares = sizes / sizes.sum()
    whole = float((shares**2).sum())
    expected = float((shares**2 * (1 - 2 * shares + whole)).sum())
    return whole / expected if expected > 0 else math.inf


@functools.lru_cache(maxsize=4096)
def _tail(level: float, patients: float) -> float:
    from scipy import stats  # imported late: it would double the start-up time of a process

    tail = (1 - level) / 2
    if math.isinf(patients):
        return tail
    reach = math.sqrt(patients / (patients - 1)) * stats.t.isf(tail, patients - 1)
    return float(stats.norm.sf(reach))


def effective_patients(class_sizes: Sequence[Ints]) -> float:
    """Number of patients that a mean over questions of means over classes is worth, by the classes' sizes.

    One more than the degrees of freedom of its variance (Satterthwaite 1946; Welch 1947), where a class of n
    items has a variance in proportion to 1 / n, known with n - 1 degrees of freedom (1 for one item).
    """
    sizes = [np.asarray(sizes, np.float64) for sizes in class_sizes]
    variances = np.concatenate([1 / (of_question * len(of_question) ** 2) for of_question in sizes])
    freedom = np.maximum(np.concatenate(sizes) - 1, 1)
    return 1 + float(variances.sum() ** 2 / (variances**2 / freedom).sum())


def effective_items(class_sizes: Sequence[Ints]) -> float:
    """Number of items that a mean over questions of means over classes is worth, by the classes' sizes.

    As many items in one class would give a mean of the same variance; with equal classes, as many as there
    are. Unlike `effective_patients` it says how large that variance is, not how well it is known.
    """
    sizes = [np.asarray(sizes, np.float64) for sizes in class_sizes]
    variances = [float((1 / of_question).sum()) / len(of_question) ** 2 for of_question in sizes]
    return len(sizes) ** 2 / sum(variances)
