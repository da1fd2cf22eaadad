"""Accuracy corrected for guessing, the same measure in every tier (protocol 16.4).

(EM - c) / (1 - c), with EM the share of items answered exactly and c what guessing by prevalence is expected
to get on the same items: the sum over answers of their squared shares. It is k for a reader that knows an
item with probability k and else guesses by prevalence.
"""

import numpy as np

from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.items import Bools, Floats, Ints, Items
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.report_scores import Reports
from cardiolens.score.statistics.statistic import Basis, Key, Statistic, mean_of

CORRECTED, EXACT = "corrected_accuracy", "exact_answers"
_Parts = dict[str, tuple[Statistic, Statistic]]  # by subtask or field: corrected, exact


def corrected_statistics(answers: Answers, weights: Floats, min_n: int) -> dict[Key, Statistic]:
    """Corrected accuracy and the share of exact answers by tier: means over subtasks, in tier 2 over fields.

    Subtasks with fewer than min_n items, or with a single gold answer, are left out of both.
    """
    items, reports = answers.items, answers.reports
    parts: dict[int, _Parts] = {1: {}, 2: {}, 3: {}}
    for subtask in map(str, np.unique(items.subtask)):
        of_one = items.where(items.subtask == subtask)
        if of_one.tier[0] == 3 or len(of_one) >= min_n:
            exact = (of_one.gold == of_one.parsed)[:, None]
            (pair,) = _corrected_and_exact(
                exact, of_one.gold[:, None], of_one.patient, weights, Basis.of(of_one)
            )
            parts[int(of_one.tier[0])] |= {subtask: pair} if pair else {}
    fields = reports.where(reports.channel == "fields")
    for subtask in map(str, np.unique(fields.subtask)):
        parts[2] |= _of_fields(subtask, fields.where(fields.subtask == subtask), weights)
    rows: dict[int, Items | Reports] = {tier: items.where(items.tier == tier) for tier in (1, 3)}
    rows[2] = fields
    return {
        (metric, f"tier:{tier}"): mean_of(
            {name: pair[at] for name, pair in of_tier.items()},
            Basis.of(rows[tier], f"mean over {len(of_tier)} {'fields' if tier == 2 else 'subtasks'}"),
        )
        for tier, of_tier in parts.items()
        for at, metric in enumerate((CORRECTED, EXACT))
        if of_tier
    }


def _of_fields(subtask: str, reports: Reports, weights: Floats) -> _Parts:
    """Score each field of a report as an item; in an unparsed report all fields are wrong."""
    field = np.array([name.partition(": ")[0] for name in reports.entities])
    names = list(dict.fromkeys(field.tolist()))
    read = reports.parse_status == "ok"
    columns = [np.flatnonzero(field == name) for name in names]
    if not columns:
        return {}
    exact = np.stack(
        [(reports.gold[:, at] == reports.predicted[:, at]).all(axis=1) & read for at in columns], axis=1
    )
    gold = np.stack(
        [np.unique(reports.gold[:, at], axis=0, return_inverse=True)[1].ravel() for at in columns], axis=1
    )
    columns_statistics = _corrected_and_exact(exact, gold, reports.patient, weights, Basis.of(reports))
    return {f"{subtask}:{name}": pair for name, pair in zip(names, columns_statistics, strict=True) if pair}


def _corrected_and_exact(
    exact: Bools, gold: Ints, patient: Ints, weights: Floats, basis: Basis
) -> list[tuple[Statistic, Statistic] | None]:
    """Both statistics of columns of items (item, column); None where all gold answers are equal."""
    units = weights.shape[1]
    number = weights @ np.bincount(patient, minlength=units)
    right = np.zeros((units, exact.shape[1]))
    np.add.at(right, patient, exact)
    shares = ratio(weights @ right, number[:, None])
    chances = [chance_accuracy(column) for column in gold.T]
    return [
        (Statistic((share - chance) / (1 - chance), basis), Statistic(share, basis)) if chance < 1 else None
        for share, chance in zip(shares.T, chances, strict=True)
    ]


def chance_accuracy(gold: Ints) -> float:
    """Expected accuracy of answers sampled from the gold answers."""
    _, counts = np.unique(gold, return_counts=True)
    return float(((counts / len(gold)) ** 2).sum())
