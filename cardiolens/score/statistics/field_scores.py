"""Scores of fields as the authors' public program has them: means over items, by field, view and type.

The exact set counts as right. Hit, precision, recall and F1 are of fields that take several options.
"""

from collections.abc import Mapping

import numpy as np

from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.score.statistics.items import Floats, Items
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.statistic import Basis, Key, Statistic

SET_ACCURACY = "set_accuracy"
OF_SETS = ("hit", "set_precision", "set_recall", "set_f1")
FIELD_METRICS = (SET_ACCURACY, *OF_SETS)
Scopes = Mapping[str, tuple[str, ...]]  # of each field


def field_scopes(catalogue: Catalogue) -> Scopes:
    """Return the scopes of each subtask of tier 1: itself, its view, its type and its protocol.

    Empty for a protocol whose subtasks share views.
    """
    fields = [subtask for subtask in catalogue.subtasks.values() if subtask.tier == 1]
    if not any(subtask.only_routed for subtask in fields):
        return {}
    return {
        subtask.id: (
            f"subtask:{subtask.id}",
            *((f"view:{subtask.route[0][0]}", f"type:{subtask.answer_type}") if subtask.only_routed else ()),
            f"protocol:{catalogue.asked_by[subtask.id][0]}",
        )
        for subtask in fields
    }


def field_statistics(items: Items, weights: Floats, scopes: Scopes) -> dict[Key, Statistic]:
    """Compute the scores of every scope of the fields, from the answers of one arm."""
    statistics: dict[Key, Statistic] = {}
    for scope in dict.fromkeys(name for names in scopes.values() for name in names):
        subtasks = [subtask for subtask, names in scopes.items() if scope in names]
        rows = items.where(np.isin(items.subtask, subtasks))
        sets = rows.where(rows.answer_type == "multi")
        if len(rows):
            statistics[SET_ACCURACY, scope] = _mean(rows, (rows.gold == rows.parsed).astype(float), weights)
        if len(sets):
            of_sets = zip(OF_SETS, set_scores(sets), strict=True)
            statistics |= {(name, scope): _mean(sets, values, weights) for name, values in of_sets}
    return statistics


def set_scores(sets: Items) -> tuple[Floats, Floats, Floats, Floats]:
    """Return hit, precision, recall and F1 of each item; a reply that names no option has 0."""
    right, picked, true = (
        np.bitwise_count(masks).astype(np.float64)
        for masks in (sets.gold & sets.parsed, sets.parsed, sets.gold)
    )
    precision = right / np.maximum(picked, 1)
    return (right > 0).astype(np.float64), precision, right / true, 2 * right / (picked + true)


def _mean(items: Items, values: Floats, weights: Floats) -> Statistic:
    n_patients = weights.shape[1]
    total = weights @ np.bincount(items.patient, weights=values, minlength=n_patients)
    number = weights @ np.bincount(items.patient, minlength=n_patients).astype(np.float64)
    return Statistic(ratio(total, number), Basis.of(items))
