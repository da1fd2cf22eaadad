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
from dataclasses import dataclass, replace

import numpy as np
import scipy  # whose parts are loaded when they are used: `stats` takes half a second
from numpy.typing import NDArray

from cardiolens.base.phrasing import counted
from cardiolens.score.statistics.items import Bools, Floats, Ints, Items
from cardiolens.storage.schemas import ILLEGAL_SELECTION

_UNREAD = ("parse_error", "contradicted", "no_answer", "truncated", ILLEGAL_SELECTION)
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


@dataclass(frozen=True, slots=True)
class Basis:
    """The data behind a statistic: numbers of items, patients and unreadable replies."""

    n_items: int
    n_patients: int
    n_parse_error: int  # truncated replies and illegal selections included
    n_refusal: int
    note: str = ""
    n_effective: float = math.inf  # patients by whom its variance is known; fewer where classes are small
    effective_items: float = math.inf  # items that it is worth; fewer where classes are small
    n_entities: int = 0  # of the references of reports, or right options of sets; 0 for other questions
    n_arms: int = 1  # arms that were asked every item, in a mean over arms
    n_positive: int | None = None  # items of the one of two classes, where these are distinguished
    n_rarer_class: int | None = None  # patients of the rarer of two classes that are distinguished
    n_hospitals: int | None = None  # where whole hospitals are resampled
    hospital_inflation: float = 1.0  # of the variance over resamples, by the hospitals' sizes

    @property
    def units(self) -> float:
        """Number of units, patients or hospitals, for the t distribution of an interval or a test."""
        return max(2.0, min(self.n_patients, self.n_effective, self.n_hospitals or math.inf))

    @property
    def inflation(self) -> float:
        """How much larger the variance of an estimate is than that over its resamples."""
        return self.units / (self.units - 1) if self.n_hospitals is None else self.hospital_inflation

    @property
    def size(self) -> float:
        """Number of items of one arm; of sets and reports that of options and entities, which may differ."""
        return (self.n_entities or self.n_items) / self.n_arms

    @property
    def effective_size(self) -> float:
        """Number of items, options or entities with a mean that would vary as much."""
        return min(self.size, self.effective_items)

    @property
    def assumed_effect(self) -> float:
        """The design effect over patients where too few events show it."""
        return min(max(self.size / self.n_patients, 1.0), DESIGN_EFFECT)

    @property
    def without_interval(self) -> str:
        """Why there is no interval; empty if there may be one."""
        if self.n_patients < FEWEST_FOR_INTERVAL:
            return f"no interval: fewer than {FEWEST_FOR_INTERVAL} patients"
        if self.n_rarer_class is not None and self.n_rarer_class < FEWEST_OF_CLASS:
            return f"no interval: fewer than {FEWEST_OF_CLASS} patients of the rarer class"
        return ""

    def of_two_classes(self, positive: Bools, patient: Ints) -> "Basis":
        """This basis for how well positive items are distinguished from the others."""
        sizes = [len(np.unique(patient[side])) for side in (positive, ~positive)]
        # a share of a half of so many items varies as an AUROC of a half (Mann and Whitney 1947)
        worth, rarer = 3 * math.prod(sizes) / (sum(sizes) + 1), min(sizes)
        return replace(
            self,
            n_positive=int(positive.sum()),
            n_effective=min(self.n_effective, rarer),
            effective_items=min(self.effective_items, worth),
            n_rarer_class=rarer,
        )

    @staticmethod
    def of(patient: Ints, parse_status: NDArray[np.str_], note: str = "") -> "Basis":
        """Count items, their patients, and replies that were not read; hospitals are not random."""
        return Basis(
            n_items=len(patient),
            n_patients=len(np.unique(patient)),
            n_parse_error=int(np.isin(parse_status, _UNREAD).sum()),
            n_refusal=int((parse_status == "refusal").sum()),
            note=note,
        )

    def of_classes(self, items: Items) -> "Basis":
        """This basis for a mean over the gold classes of questions, with a note on the rarest class."""
        sizes = [np.unique(rows.gold, return_counts=True)[1] for _, rows in items.by_subtask()]
        rarest = f"rarest class {counted(min(map(min, sizes)), 'item')}"
        note = f"{self.note}, {rarest}" if self.note else rarest
        return replace(
            self, note=note, n_effective=effective_patients(sizes), effective_items=effective_items(sizes)
        )


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


def share_ends(value: float, variance: float, basis: Basis, tail: float) -> Ends | None:
    """Clopper and Pearson's limits of a share of an effective number of items; None away from the boundary.

    The effective number is value (1 - value) / variance (Korn and Graubard, Survey Methodology
    1998;24:193-201), at most that of the basis; near 0 or 1, at most that over the assumed design effect.
    At 0 and 1 it is that most: a variance there is of other items that resamples bring in, as in a risk at
    some coverage. All are fractions.
    """
    rarer, size, most = min(value, 1 - value), basis.size, basis.effective_size
    estimated = value * (1 - value) / variance if rarer > 0 and variance > 0 else math.inf
    if rarer >= _MIDDLE:
        narrower = float(scipy.stats.norm.isf(tail)) / _t_quantile(tail, basis.n_patients)
        effective = min(most, estimated * narrower**2)
        is_near = min(size, estimated * size / most) * rarer < FEWEST_EVENTS
    else:
        most /= basis.assumed_effect
        effective, is_near = min(most, estimated), most * rarer < _FEWEST_NEAR
    if not is_near:
        return None
    right, wrong = effective * value, effective * (1 - value)
    low = float(scipy.special.betaincinv(right, wrong + 1, tail)) if right > 0 else 0.0
    high = float(scipy.special.betaincinv(right + 1, wrong, 1 - tail)) if wrong > 0 else 1.0
    return low, high


def difference_ends(value: float, variance: float, basis: Basis, tail: float) -> Ends | None:
    """Limits of a paired difference by a score test; None where enough answers differ.

    Two arms that differ by d differ on at least |d| of the items, so a true difference x has a
    variance of at least |x| (1 - |x|) / n, as in Tango's score interval (Stat Med 1998;17:891-908), with n
    the effective items over the assumed design effect. The limits are those x that are a t quantile from the
    observed difference.
    """
    if variance * basis.size**2 / basis.assumed_effect >= FEWEST_EVENTS:
        return None
    effective = basis.effective_size / basis.assumed_effect
    reach = _t_quantile(tail, basis.units)
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
