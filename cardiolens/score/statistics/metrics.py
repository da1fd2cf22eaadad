"""Metrics as arithmetic on counts, for one cohort or a thousand resamples at once (protocol 8.1, 8.4, 3.3).

A function takes counts with further axes and gives fractions with those axes; undefined is NaN.
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np
import scipy  # whose parts are loaded when they are used: `stats` takes half a second

from cardiolens.protocol.tasks.catalogue import GATES
from cardiolens.score.statistics.bootstrap import joint_freedom
from cardiolens.score.statistics.items import Floats, Ints, Items, optional_metrics

CRITERION, D_PRIME, SEVERITY_SHIFT = "criterion", "d_prime", "severity_shift"
ENTROPY_DEFICIT = "entropy_deficit"
# the flag of 8.4, and the excess over its prevalence from which the most frequent answer counts
COLLAPSE_INDEX, MODAL_SHARE, MODAL_EXCESS, EXCESS = 0.3, 0.8, 0.1, 0.05
# subtasks whose first option is normal and stands against all others
NORMAL_OR_NOT = GATES | {"D01"}
_NORMAL = 1  # the bit of the first option
CALL_COUNTS, SHIFT_COUNTS = 4, 2  # cells of a patient
Sums = Mapping[str, Floats]


def ratio(part: Floats, total: Floats) -> Floats:
    """part / total, NaN where total is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total != 0, part / total, np.nan)  # keeps the order in memory


def mean_defined(values: Floats, axis: int = -1) -> Floats:
    """Mean of the values that are not NaN; NaN if there are none."""
    defined = ~np.isnan(values)
    return ratio(np.where(defined, values, 0).sum(axis=axis), defined.sum(axis=axis))


def weighted_agreement(table: Floats, disagreement: Floats) -> Floats:
    """1 - observed / expected disagreement of square tables (..., C, C); NaN where none is expected."""
    gold, called = table.sum(axis=-1), table.sum(axis=-2)
    observed = np.einsum("...ij,ij->...", table, disagreement) * gold.sum(axis=-1)
    expected = np.einsum("...i,...i->...", gold, called @ disagreement.T)
    return 1 - ratio(observed, expected)


def of_confusion(confusion: Floats) -> dict[str, Floats]:
    """Indices of category collapse from matrices (..., gold, predicted), the last predicted column unparsed.

    They are over parsed answers only; `unparsed` is the share of all others.
    """
    table = confusion[..., :-1]
    gold, called = _shares(table.sum(axis=-1)), _shares(table.sum(axis=-2))
    size = table.shape[-1]
    entropy, gold_entropy = _entropy(called) / np.log(size), _entropy(gold) / np.log(size)
    mode = np.argmax(called, axis=-1)[..., None]
    modal_share = np.take_along_axis(called, mode, axis=-1)[..., 0]
    absorption = _absorption(table, mode)
    excess = modal_share - np.take_along_axis(gold, mode, axis=-1)[..., 0]
    return {
        "entropy": entropy,
        ENTROPY_DEFICIT: gold_entropy - entropy,
        "modal_share": modal_share,
        "modal_excess": excess,
        "absorption": absorption,
        # in proportion to the excess below EXCESS: misses of a rare finding are no collapse
        "collapse_index": absorption * (1 - entropy) * np.clip(excess / EXCESS, 0, 1),
        "shift": 0.5 * np.abs(called - gold).sum(axis=-1),
        "unparsed": ratio(confusion[..., -1].sum(axis=-1), confusion.sum(axis=(-2, -1))),
    }


def is_collapsed(indices: Mapping[str, float], excess_low: float) -> bool:
    """Return whether indices reach the flag of 8.4 and the interval of the modal excess lies above EXCESS.

    `excess_low` is the interval's lower end.
    """
    narrow = indices["modal_share"] >= MODAL_SHARE and indices["modal_excess"] >= MODAL_EXCESS
    return (indices["collapse_index"] >= COLLAPSE_INDEX or narrow) and excess_low > EXCESS


def _absorption(table: Floats, mode: Ints) -> Floats:
    """P(predicted = mode given gold is another class)."""
    into_mode = np.take_along_axis(table, mode[..., None], axis=-1)[..., 0]  # (..., gold)
    of_others = np.arange(table.shape[-1]) != mode
    return ratio((into_mode * of_others).sum(axis=-1), (table.sum(axis=-1) * of_others).sum(axis=-1))


def _shares(counts: Floats) -> Floats:
    return ratio(counts, counts.sum(axis=-1, keepdims=True))


def _entropy(shares: Floats) -> Floats:
    """Entropy of shares (..., class), in nats; an empty class adds nothing."""
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.where(np.isnan(shares).any(axis=-1), np.nan, -(shares * logs).sum(axis=-1))


def call_counts(items: Items) -> list[np.ndarray]:
    """Count each item that was read: normal, normal called abnormal, abnormal, abnormal called so."""
    is_read, called = items.parsed > 0, items.parsed > _NORMAL
    normal, abnormal = (is_read & side for side in (items.gold == _NORMAL, items.gold > _NORMAL))
    return [normal, normal & called, abnormal, abnormal & called]


def of_calls(counts: Floats) -> dict[str, Floats]:
    """Criterion and d' from sums (4, ...) of `call_counts`.

    The equal-variance model of signal detection, with half a call added to each rate and one item to its
    number, so that rates of 0 and 1 stay finite (log-linear rule; Hautus, Behav Res Methods 1995;27:46-51).
    A criterion above 0 calls fewer abnormal than an unbiased reader of the same d' would. Undefined without
    a normal or without an abnormal item.
    """
    normal, false_alarms, abnormal, hits = counts
    of_normal, of_abnormal = (
        np.where(number > 0, scipy.special.ndtri((called + 0.5) / (number + 1)), np.nan)
        for called, number in ((false_alarms, normal), (hits, abnormal))
    )
    return {
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

    One more than the degrees of freedom of their variance: that of the z value of a rate of n items is
    p (1 - p) / (n phi(z)^2), and from k calls of n nothing more is known of it than from min(k, n - k)
    events.
    """
    by_subtask = (call_counts(rows) for _, rows in items.by_subtask())
    number, called = np.reshape([np.sum(counts, axis=1) for counts in by_subtask], (-1, 2)).T
    number, called = number[number > 0], called[number > 0]
    if not len(number):
        return math.inf
    rate = (called + 0.5) / (number + 1)
    density = np.exp(-(scipy.special.ndtri(rate) ** 2) / 2) / math.sqrt(2 * math.pi)
    variance = rate * (1 - rate) / (number * density**2)
    return 1 + joint_freedom(variance, np.maximum(np.minimum(called, number - called) - 1, 1))


def by_patient(counts: Iterable[np.ndarray], patient: Ints, units: int) -> Floats:
    """Sum the counts of items over each patient: (cell, patient)."""
    return np.stack([np.bincount(patient, weights=count, minlength=units) for count in counts])


def _rank(bits: Ints) -> Ints:
    return np.asarray(np.bitwise_count(np.maximum(bits, 1) - 1), np.int64)


def of_fields(sums: Sums) -> dict[str, Floats]:
    """Scores of the structured fields: micro over reports."""
    return of_entities(sums) | {"field_match": ratio(sums["fields_equal"], sums["fields"])}


def of_entities(sums: Sums) -> dict[str, Floats]:
    """Entity precision, recall and F1, F1 of abnormal entities, and three error rates."""
    return {
        "entity_f1": _f1(sums, ""),
        "entity_precision": _one_side(sums["tp"], sums["fp"], sums["fn"]),
        "entity_recall": _one_side(sums["tp"], sums["fn"], sums["fp"]),
        "abnormal_f1": _f1(sums, "abnormal_"),
        "hallucination": ratio(sums["abnormal_fp"], sums["abnormal_tp"] + sums["abnormal_fp"]),
        "omission": ratio(sums["abnormal_fn"], sums["abnormal_tp"] + sums["abnormal_fn"]),
        "contradiction": ratio(sums["contradicted"], sums["gates"]),
    }


def of_text(sums: Sums) -> dict[str, Floats]:
    """Entity F1 of the text, mean ROUGE-L F1 over reports, corpus BLEU-4, and the optional ones."""
    means = {name: ratio(sums[name], sums["reports"]) for name in ("rouge_l", *optional_metrics(sums))}
    return {"text_entity_f1": _f1(sums, "")} | means | {"bleu_4": bleu_4(sums)}


def bleu_4(sums: Sums) -> Floats:
    """Corpus BLEU-4 (Papineni et al. 2002) with add-one smoothing for n > 1 (Lin and Och 2004)."""
    words, reference = sums["words"], sums["reference_words"]
    precisions = [ratio(sums["match_1"], sums["gram_1"])]
    precisions += [(sums[f"match_{n}"] + 1) / (sums[f"gram_{n}"] + 1) for n in (2, 3, 4)]
    brevity = np.exp(np.minimum(0.0, 1 - ratio(reference, words)))
    score = brevity * np.prod(np.stack(precisions), axis=0) ** 0.25
    return np.where(reference == 0, np.nan, np.where(words == 0, 0.0, score))


def _f1(sums: Sums, kind: str) -> Floats:
    right = sums[f"{kind}tp"]
    return ratio(2 * right, 2 * right + sums[f"{kind}fp"] + sums[f"{kind}fn"])


def _one_side(right: Floats, wrong: Floats, other: Floats) -> Floats:
    """right / (right + wrong); 0 where only this side is empty, NaN where both are."""
    value = np.nan_to_num(ratio(right, right + wrong))
    return np.where(right + wrong + other == 0, np.nan, value)
