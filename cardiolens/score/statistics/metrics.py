"""The metrics of protocol 8.1 as arithmetic on counts, for one cohort or a thousand resamples at once.

Every function takes counts with leading axes and gives fractions with those axes; undefined is NaN.
"""

from collections.abc import Callable

import numpy as np

from cardiolens.score.statistics.items import Bools, Floats
from cardiolens.score.statistics.patient_states import Choices, Sets, State


def ratio(part: Floats, whole: Floats) -> Floats:
    """part / whole, NaN where whole is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole != 0, part / whole, np.nan)  # keeps the order in memory


def mean_defined(values: Floats, axis: int = -1) -> Floats:
    """Mean of the values that are not NaN; NaN if there are none."""
    defined = ~np.isnan(values)
    return ratio(np.where(defined, values, 0).sum(axis=axis), defined.sum(axis=axis))


def without_unparsed(confusion: Floats) -> Floats:
    """A confusion matrix without its unparsed column."""
    return confusion[..., :-1]


def accuracy(confusion: Floats) -> Floats:
    """Share of items answered right."""
    return ratio(_hits(confusion).sum(axis=-1), confusion.sum(axis=(-2, -1)))


def class_f1(confusion: Floats) -> Floats:
    """F1 of each class (..., class)."""
    hits = _hits(confusion)
    return ratio(2 * hits, without_unparsed(confusion).sum(axis=-2) + confusion.sum(axis=-1))


def macro_f1(confusion: Floats, classes: Bools) -> Floats:
    """Mean F1 over some classes: those present in the gold of the full sample."""
    return mean_defined(class_f1(confusion)[..., classes])


def balanced_accuracy(confusion: Floats, classes: Bools) -> Floats:
    """Mean recall over some classes."""
    return mean_defined(ratio(_hits(confusion), confusion.sum(axis=-1))[..., classes])


def within_one(confusion: Floats) -> Floats:
    """Share of items at most one rank off."""
    distance = _distance(confusion.shape[-2])
    return ratio(
        (without_unparsed(confusion) * (distance <= 1)).sum(axis=(-2, -1)), confusion.sum(axis=(-2, -1))
    )


def mean_rank_error(confusion: Floats) -> Floats:
    """Mean distance in ranks; an unparsed answer is C - 1 off."""
    size = confusion.shape[-2]
    errors = (without_unparsed(confusion) * _distance(size)).sum(axis=(-2, -1)) + (size - 1) * confusion[
        ..., -1
    ].sum(axis=-1)
    return ratio(errors, confusion.sum(axis=(-2, -1)))


def kappa(confusion: Floats) -> Floats:
    """Cohen's kappa over parsed answers (Cohen 1960)."""
    size = confusion.shape[-2]
    return weighted_agreement(without_unparsed(confusion), (_distance(size) > 0).astype(float))


def weighted_kappa(confusion: Floats) -> Floats:
    """Kappa with quadratic weights over parsed answers (Cohen 1968)."""
    size = confusion.shape[-2]
    return weighted_agreement(without_unparsed(confusion), (_distance(size) / max(size - 1, 1)) ** 2)


def weighted_agreement(table: Floats, disagreement: Floats) -> Floats:
    """1 - observed / expected disagreement of square tables (..., C, C); NaN where none is expected."""
    gold, called = table.sum(axis=-1), table.sum(axis=-2)
    observed = np.einsum("...ij,ij->...", table, disagreement) * gold.sum(axis=-1)
    expected = np.einsum("...i,...i->...", gold, called @ disagreement.T)
    return 1 - ratio(observed, expected)


def precision(options: Floats) -> Floats:
    """Micro precision of (..., option, [tp, fp, fn])."""
    right, added, _ = _pool_options(options)
    return _set_ratio(right, right + added, options)


def recall(options: Floats) -> Floats:
    """Micro recall."""
    right, _, missed = _pool_options(options)
    return _set_ratio(right, right + missed, options)


def micro_f1(options: Floats) -> Floats:
    """Micro F1."""
    right, added, missed = _pool_options(options)
    return ratio(2 * right, 2 * right + added + missed)


def option_macro_f1(options: Floats) -> Floats:
    """Mean F1 over options, without those that are neither true nor chosen."""
    right, added, missed = np.moveaxis(options, -1, 0)
    return mean_defined(ratio(2 * right, 2 * right + added + missed))


def sample_f1(overlaps: Floats) -> Floats:
    """Mean over items of 2 tp / (2 tp + errors), of (..., tp, errors)."""
    right, wrong = _overlap_axes(overlaps)
    return _mean_over_items(overlaps, ratio(2 * right, 2 * right + wrong))


def jaccard(overlaps: Floats) -> Floats:
    """Mean over items of tp / (tp + errors)."""
    right, wrong = _overlap_axes(overlaps)
    return _mean_over_items(overlaps, ratio(right, right + wrong))


def exact_match(overlaps: Floats) -> Floats:
    """Share of items with exactly the gold set."""
    return ratio(overlaps[..., 0].sum(axis=-1), overlaps.sum(axis=(-2, -1)))


def of_choices(state: Choices, classes: Bools) -> dict[str, Floats]:
    """Metrics of a single-choice subtask."""
    return {
        "accuracy": accuracy(state.confusion),
        "macro_f1": macro_f1(state.confusion, classes),
        "balanced_accuracy": balanced_accuracy(state.confusion, classes),
        "kappa": kappa(state.confusion),
    }


def of_ranks(state: Choices, classes: Bools) -> dict[str, Floats]:
    """Metrics of an ordinal subtask."""
    return of_choices(state, classes) | {
        "within_one": within_one(state.confusion),
        "mean_rank_error": mean_rank_error(state.confusion),
        "weighted_kappa": weighted_kappa(state.confusion),
    }


def of_sets(state: Sets) -> dict[str, Floats]:
    """Metrics of a multi-select subtask."""
    return {
        "micro_f1": micro_f1(state.options),
        "precision": precision(state.options),
        "recall": recall(state.options),
        "option_macro_f1": option_macro_f1(state.options),
        "sample_f1": sample_f1(state.overlaps),
        "jaccard": jaccard(state.overlaps),
        "exact_match": exact_match(state.overlaps),
    }


PRIMARY = {"single": "accuracy", "ordinal": "accuracy", "multi": "micro_f1"}


def of_state(answer_type: str, state: State, classes: Bools) -> dict[str, Floats]:
    """All metrics of a subtask by its answer type."""
    if isinstance(state, Sets):
        return of_sets(state)
    assert isinstance(state, Choices)
    by_type: dict[str, Callable[[Choices, Bools], dict[str, Floats]]] = {
        "single": of_choices,
        "ordinal": of_ranks,
    }
    return by_type[answer_type](state, classes)


def _hits(confusion: Floats) -> Floats:
    return np.diagonal(without_unparsed(confusion), axis1=-2, axis2=-1)


def _distance(size: int) -> Floats:
    ranks = np.arange(size, dtype=np.float64)
    return np.abs(ranks[:, None] - ranks[None, :])


def _pool_options(options: Floats) -> tuple[Floats, Floats, Floats]:
    right, added, missed = np.moveaxis(options.sum(axis=-2), -1, 0)
    return right, added, missed


def _set_ratio(right: Floats, whole: Floats, options: Floats) -> Floats:
    """right / whole; 0 where only this side is empty, NaN where nothing is true and nothing chosen."""
    nothing = options.sum(axis=(-2, -1)) == 0
    return np.where(nothing, np.nan, np.nan_to_num(ratio(right, whole)))


def _overlap_axes(overlaps: Floats) -> tuple[Floats, Floats]:
    size = overlaps.shape[-1]
    ranks = np.arange(size, dtype=np.float64)
    return np.broadcast_to(ranks[:, None], (size, size)), np.broadcast_to(ranks[None, :], (size, size))


def _mean_over_items(overlaps: Floats, values: Floats) -> Floats:
    """Mean of a value by cell, without items that have nothing true and nothing chosen."""
    defined = ~np.isnan(values)
    cells = overlaps * defined
    return ratio((cells * np.where(defined, values, 0)).sum(axis=(-2, -1)), cells.sum(axis=(-2, -1)))
