"""How readily a reader calls an abnormality, apart from how well it tells one (protocol 8.4, 17.9)."""

import math
from collections.abc import Sequence

import numpy as np

from cardiolens.protocol.tasks.catalogue import GATES
from cardiolens.score.statistics.items import Floats, Ints, Items
from cardiolens.score.statistics.metrics import ratio

CRITERION, D_PRIME, SEVERITY_SHIFT = "criterion", "d_prime", "severity_shift"
# subtasks whose first option is normal and stands against all others
NORMAL_OR_NOT = GATES | {"D01"}
_NORMAL = 1  # the bit of the first option
CALL_COUNTS, SHIFT_COUNTS = 4, 2  # cells of a patient


def call_counts(items: Items) -> list[np.ndarray]:
    """Count each item that was read: normal, normal called abnormal, abnormal, abnormal called so."""
    is_read, called = items.parsed > 0, items.parsed > _NORMAL
    normal, abnormal = (is_read & side for side in (items.gold == _NORMAL, items.gold > _NORMAL))
    return [normal, normal & called, abnormal, abnormal & called]


def of_calls(counts: Floats) -> dict[str, Floats]:
    """Share of abnormal calls, criterion and d', from sums (4, ...) of `call_counts`.

    The equal-variance model of signal detection, with half a call added to each rate and one item to its
    number, so that rates of 0 and 1 stay finite (log-linear rule; Hautus, Behav Res Methods 1995;27:46-51).
    A criterion above 0 calls fewer abnormal than an unbiased reader of the same d' would. Undefined without
    a normal or without an abnormal item.
    """
    from scipy import special

    normal, false_alarms, abnormal, hits = counts
    of_normal, of_abnormal = (
        np.where(number > 0, special.ndtri((called + 0.5) / (number + 1)), np.nan)
        for called, number in ((false_alarms, normal), (hits, abnormal))
    )
    return {
        "abnormal_call": ratio(false_alarms + hits, normal + abnormal),
        CRITERION: -(of_abnormal + of_normal) / 2,
        D_PRIME: of_abnormal - of_normal,
    }


def shift_counts(items: Items) -> list[np.ndarray]:
    """Count each ordinal item: whether it was read, and how many grades too severe it was called."""
    is_read = items.parsed > 0
    return [is_read, np.where(is_read, _rank(items.parsed) - _rank(items.gold), 0)]


def of_shifts(counts: Floats) -> dict[str, Floats]:
    """Mean grades by which calls are too severe, or below 0 too mild, from sums (2, ...)."""
    return {SEVERITY_SHIFT: ratio(counts[1], counts[0])}


def effective_patients_of_calls(items: Items) -> float:
    """Number of patients that criterion and d' are worth, by the rarer answer in each class.

    One more than the degrees of freedom of their variance (Satterthwaite 1946): that of the z value of a rate
    of n items is p (1 - p) / (n phi(z)^2), and from k calls of n nothing more is known of it than from
    min(k, n - k) events.
    """
    counts = [
        np.stack(call_counts(items.where(items.subtask == name))).sum(axis=1)
        for name in np.unique(items.subtask)
    ]
    pairs = np.array(
        [(called, number) for n0, k0, n1, k1 in counts for called, number in ((k0, n0), (k1, n1))]
    )
    called, number = np.moveaxis(pairs.reshape(-1, 2), -1, 0)
    called, number = called[number > 0], number[number > 0]
    if not len(number):
        return math.inf
    rate = (called + 0.5) / (number + 1)
    variance = rate * (1 - rate) / (number * _density(rate) ** 2)
    freedom = np.maximum(np.minimum(called, number - called) - 1, 1)
    return 1 + float(variance.sum() ** 2 / (variance**2 / freedom).sum())


def _density(rate: Floats) -> Floats:
    """The normal density at the z value of a rate."""
    from scipy import special

    return np.asarray(np.exp(-(special.ndtri(rate) ** 2) / 2) / math.sqrt(2 * math.pi))


def by_patient(counts: Sequence[np.ndarray], patient: Ints, units: int) -> Floats:
    """Sum the counts of items over each patient: (cell, patient)."""
    return np.stack([np.bincount(patient, weights=count, minlength=units) for count in counts])


def _rank(bits: Ints) -> Ints:
    return np.asarray(np.bitwise_count(np.maximum(bits, 1) - 1), np.int64)
