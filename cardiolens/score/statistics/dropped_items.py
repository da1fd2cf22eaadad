"""Items that fell out of a comparison, and the bounds that they leave (protocol 16.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.cells import Cells, claimed
from cardiolens.score.statistics.items import Items
from cardiolens.score.statistics.outcomes import COMPLETE, INCOMPLETE
from cardiolens.score.statistics.reports import Reports
from cardiolens.score.statistics.statistic import Key

Rows = TypeVar("Rows", Items, Reports)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Items that fell out of a comparison, of how many, and its values had they been wrong or right."""

    fallen: int
    asked: int
    low: float
    high: float

    @property
    def note(self) -> str:
        """In words, for the table."""
        said = f"{self.fallen} of {self.asked} items fell out"
        return f"{INCOMPLETE}, {said}" if self.fallen > (1 - COMPLETE) * self.asked else said


def bounds(
    ours: Sequence[Answers], theirs: Sequence[Answers], common: Answers, min_n: int
) -> dict[Key, Bounds]:
    """Bounds of the mean difference of arms, by claimed statistic, of all that was asked of either side.

    `common` are the rows that the difference rests on. At the low end every answer that our side lacks is
    wrong and every one that theirs lacks is right; at the high end the reverse. Empty where nothing fell out.
    """
    every = [*ours, *theirs]
    asked = every[0]
    for one in every[1:]:
        asked = asked.joined(one.among(asked.items.question, asked.reports.question, out=True))
    if len(asked) == len(common):
        return {}
    worst, best = (
        [_mean([_values(arm, asked, right, min_n) for arm in side]) for side in (ours, theirs)]
        for right in (False, True)
    )
    lost = asked.among(common.items.question, common.reports.question, out=True)
    found = {}
    for key in worst[0]:
        whole, gone = (len(_counted(some, key[1])) for some in (asked, lost))
        found[key] = Bounds(gone, whole, worst[0][key] - best[1][key], best[0][key] - worst[1][key])
    return {key: bound for key, bound in found.items() if bound.fallen}


def _counted(answers: Answers, scope: str) -> Items | Reports:
    rows = answers.in_scope(scope)
    return rows if isinstance(rows, Items) else rows.where(rows.channel == "fields")


def _mean(found: Sequence[Mapping[Key, float]]) -> dict[Key, float]:
    return {key: float(np.mean([one[key] for one in found])) for key in found[0]}


def _values(arm: Answers, asked: Answers, right: bool, min_n: int) -> dict[Key, float]:
    """The statistics of an arm that gave the right, or a wrong, answer wherever it gave none."""
    judged = arm.where_judged()
    lost = asked.among(judged.items.question, judged.reports.question, out=True)
    filled = judged.joined(_given(lost, right))
    filled = replace(filled, items=_of_one(filled.items), reports=_of_one(filled.reports))
    cells = Cells.of(filled, 1)
    return {key: float(value[0]) for key, value in claimed(cells.parts, cells.rows, min_n).items()}


def _given(lost: Answers, right: bool) -> Answers:
    items, reports = lost.items, lost.reports
    number = reports.gold.sum(axis=1)
    counts = np.zeros_like(reports.counts)
    counts[:, reports.names.index("tp" if right else "fn")] = number
    said = items.gold if right else np.zeros_like(items.gold)
    return Answers(replace(items, parsed=said), replace(reports, counts=counts))


def _of_one(rows: Rows) -> Rows:
    """The rows as if of one patient."""
    return replace(rows, patient=np.zeros_like(rows.patient))
