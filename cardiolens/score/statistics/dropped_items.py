"""Items dropped from a comparison, and bounds of the difference had they been kept (protocol 16.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.cells import Cells, claimed_statistics
from cardiolens.score.statistics.items import Items
from cardiolens.score.statistics.outcomes import COMPLETE, INCOMPLETE
from cardiolens.score.statistics.report_scores import Reports
from cardiolens.score.statistics.statistic import Key

Rows = TypeVar("Rows", Items, Reports)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Numbers of dropped and of all items, and the difference had the dropped ones been wrong or right."""

    n_dropped: int
    n_requested: int
    low: float
    high: float

    @property
    def note(self) -> str:
        """The numbers in words, for the `method` column."""
        words = f"{self.n_dropped} of {self.n_requested} items fell out"
        return f"{INCOMPLETE}, {words}" if self.n_dropped > (1 - COMPLETE) * self.n_requested else words


def bounds(
    ours: Sequence[Answers], theirs: Sequence[Answers], common: Answers, min_n: int
) -> dict[Key, Bounds]:
    """Bounds of the mean difference of arms over all requested items, by claimable statistic.

    `common` are the rows behind the difference. At the low end every answer that our side lacks is
    wrong and every one that theirs lacks is right; at the high end the reverse. Empty if nothing was dropped.
    """
    every = [*ours, *theirs]
    requested = every[0]
    for arm_answers in every[1:]:
        requested = requested.joined_with(
            arm_answers.among(requested.items.question, requested.reports.question, out=True)
        )
    if len(requested) == len(common):
        return {}
    worst, best = (
        [_mean([_values(arm, requested, right, min_n) for arm in side]) for side in (ours, theirs)]
        for right in (False, True)
    )
    dropped = requested.among(common.items.question, common.reports.question, out=True)
    limits = {}
    for key in worst[0]:
        n_requested, n_dropped = (len(_counted_rows(answers, key[1])) for answers in (requested, dropped))
        limits[key] = Bounds(
            n_dropped, n_requested, worst[0][key] - best[1][key], best[0][key] - worst[1][key]
        )
    return {key: limit for key, limit in limits.items() if limit.n_dropped}


def _counted_rows(answers: Answers, scope: str) -> Items | Reports:
    rows = answers.in_scope(scope)
    return rows if isinstance(rows, Items) else rows.where(rows.channel == "fields")


def _mean(values: Sequence[Mapping[Key, float]]) -> dict[Key, float]:
    return {key: float(np.mean([of_arm[key] for of_arm in values])) for key in values[0]}


def _values(arm: Answers, requested: Answers, right: bool, min_n: int) -> dict[Key, float]:
    """Statistics of an arm with every missing answer filled in as right, or as wrong."""
    judged = arm.where_judged()
    dropped = requested.among(judged.items.question, judged.reports.question, out=True)
    filled = judged.joined_with(_filled(dropped, right))
    filled = replace(filled, items=_of_one(filled.items), reports=_of_one(filled.reports))
    cells = Cells.of(filled, 1)
    return {key: float(value[0]) for key, value in claimed_statistics(cells.parts, cells.rows, min_n).items()}


def _filled(dropped: Answers, right: bool) -> Answers:
    items, reports = dropped.items, dropped.reports
    number = reports.gold.sum(axis=1)
    counts = np.zeros_like(reports.counts)
    counts[:, reports.names.index("tp" if right else "fn")] = number
    parsed = items.gold if right else np.zeros_like(items.gold)
    return Answers(replace(items, parsed=parsed), replace(reports, counts=counts))


def _of_one(rows: Rows) -> Rows:
    """Assign all rows to one patient."""
    return replace(rows, patient=np.zeros_like(rows.patient))
