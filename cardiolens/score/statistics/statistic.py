"""A statistic in the cohort and in each of its resamples, with its basis, as a row of scores."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cardiolens.score.statistics.bootstrap import (
    Basis,
    Interval,
    difference_ends,
    over_hospitals,
    percentile,
    resampled_variance,
    resampling_weights,
    share_ends,
    variance_inflation,
)
from cardiolens.score.statistics.counting import Forms, Key
from cardiolens.score.statistics.hypothesis_tests import SWAPS
from cardiolens.score.statistics.items import Floats, Ints, Reports, Rows
from cardiolens.score.statistics.metrics import by_patient, mean_defined

Scopes = Mapping[str, tuple[str, ...]]  # of each field of a protocol
Row = dict[str, Any]
_NO_WIDTH = 1e-12
_COUNTS = ("n_items", "n_patients", "n_parse_error", "n_refusal", "n_positive", "n_rarer_class")


@dataclass(frozen=True, slots=True)
class Statistic:
    """Values as fractions: entry 0 in the cohort, the rest in its resamples; one entry if nothing varies."""

    values: Floats
    basis: Basis
    of_pairs: bool = False  # a difference of two arms on the same items

    def interval(self, metric: str, level: float = 0.95) -> Interval:
        """The value in its metric's unit with its interval by the bootstrap, near 0 and 1 by a score test.

        There is none where the patients are too few (`without_interval`), or where no resample differs from
        another and the statistic is neither a share nor a difference of shares.
        """
        basis, how, unit = self.basis, self.basis.without_interval, scale(metric)
        values = self.values[:1] if how else self.values
        if basis.n_hospitals is None:
            bootstrapped = percentile(values, level, basis.units)
        else:
            bootstrapped = over_hospitals(values, level, basis.n_hospitals, basis.inflation)
        value, low, high = bootstrapped.value, bootstrapped.low, bootstrapped.high
        if not math.isnan(low):
            name, _, suffix = metric.partition(".")
            ends, is_share = None, name in _SHARES and suffix != "skill"
            if is_share:
                of_ends = difference_ends if self.of_pairs else share_ends
                ends = of_ends(value, resampled_variance(values, basis.units), basis, (1 - level) / 2)
            if ends is not None and self.of_pairs:
                low, high = min(low, ends[0]), max(high, ends[1])
                how = "few answers differ: score interval with an effective n"
            elif ends is not None:
                (low, high), how = ends, "near the boundary: Clopper-Pearson with an effective n"
            elif high - low < _NO_WIDTH:
                low, high, how = math.nan, math.nan, "no interval: no resample differs from another"
            if is_share:  # the t interval of a few hospitals may reach beyond what there is
                low, high = max(low, -1.0 if self.of_pairs else 0.0), min(high, 1.0)
        return Interval(value * unit, low * unit, high * unit, how)


def mean_of(parts: Sequence[Statistic], basis: Basis) -> Statistic:
    """The unweighted mean of some statistics, where defined; NaN of none."""
    if not parts:
        return Statistic(np.array([np.nan]), basis)
    return Statistic(mean_defined(np.stack([part.values for part in parts], axis=-1)), basis)


# metrics that are shares or means of shares, from 0 to 1; a suffix names an option, a bin or a coverage
_SHARE_METRICS = """
primary accuracy macro_f1 precision recall exact_answers entity_f1 abnormal_f1 hallucination omission
text_entity_f1 answers_changed auroc average_precision risk calibration modal_share unparsed
set_accuracy hit set_precision set_recall set_f1
moved_with_lesion right_with_and_without moved_without_cause
within_tolerance constant_within recall_at_1 recall_at_3 recall_at_5
"""
_SHARES = frozenset(_SHARE_METRICS.split())
# metrics with a unit of their own; all others are percent
OWN_UNIT = frozenset(
    {"mean_cardinality", "criterion", "d_prime", "severity_shift"}
    | {"absolute_error", "bias", "limit_low", "limit_high", "constant_error", "error_below_constant"}
)
TIERS = ("tier:1", "tier:2", "tier:3")


def as_row(key: Key, statistic: Statistic, method: str, level: float = 0.95) -> Row:
    """Convert a statistic with its interval to a score row without its arm."""
    metric, scope = key
    basis, interval = statistic.basis, statistic.interval(metric, level)
    hospitals = "" if basis.n_hospitals is None else f"{basis.n_hospitals} hospitals"
    resampled = method if not interval.how or not math.isnan(interval.low) else ""
    return {
        "metric": metric,
        "scope": scope,
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
        **{name: getattr(basis, name) for name in _COUNTS},
        "method": "; ".join(filter(None, (basis.note, hospitals, interval.how, resampled))),
    }


def scale(metric: str) -> float:
    """Factor from a fraction to the metric's unit."""
    return 1.0 if metric in OWN_UNIT else 100.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of scoring: least items of a subtask, resamples, their seed, and what the protocol adds."""

    min_n: int
    resamples: int
    seed: int
    forms: Forms = field(default_factory=dict)
    scopes: Scopes = field(default_factory=dict)
    swaps: int = SWAPS


@dataclass(frozen=True, slots=True)
class Resampling:
    """How often each patient of a cohort is in each resample, which every statistic of a run shares."""

    settings: Settings
    weights: Floats
    hospitals: Ints | None = None  # codes of the patients', where whole hospitals are resampled

    @staticmethod
    def of(settings: Settings, patients: int, hospitals: Ints | None = None) -> "Resampling":
        """Draw the resamples of a cohort; with `hospitals`, the codes of its patients', whole ones."""
        weights = resampling_weights(patients, settings.resamples, settings.seed, hospitals)
        return Resampling(settings, weights, hospitals)

    def sums(self, counts: Iterable[np.ndarray], patient: Ints) -> Floats:
        """Sums of counts of items, with the patient of each, over every resample: (count, resample)."""
        return by_patient(counts, patient, self.patients) @ self.weights.T

    def basis(self, rows: Rows, note: str = "") -> Basis:
        """Count judged rows, and their hospitals where these are resampled."""
        basis = Basis.of(rows.patient, rows.parse_status, note)
        if self.hospitals is None or not len(rows):
            return basis
        _, sizes = np.unique(self.hospitals[rows.patient], return_counts=True)
        return replace(basis, n_hospitals=len(sizes), hospital_inflation=variance_inflation(sizes))

    def basis_of_entities(self, reports: Reports, note: str = "") -> Basis:
        """Count the rows of reports and the entities of their references."""
        return replace(self.basis(reports, note), n_entities=int(reports.gold.sum()))

    @property
    def method(self) -> str:
        """The bootstrap in words, for the `method` column."""
        kind = "t interval, bootstrap of hospitals"
        kind = "expanded percentile cluster bootstrap" if self.hospitals is None else kind
        return f"{kind}, B={len(self.weights) - 1}, seed {self.settings.seed}"

    @property
    def patients(self) -> int:
        """The number of patients in the cohort."""
        return len(self.weights[0])
