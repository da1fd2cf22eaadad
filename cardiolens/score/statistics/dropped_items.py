"""Items dropped from a comparison or not read, and bounds of the difference over them (protocol 16.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from cardiolens.score.statistics.answers import Answers, of_fields
from cardiolens.score.statistics.counting import Cells, Key, claimed_values
from cardiolens.score.statistics.items import Ints, Items, Reports
from cardiolens.score.statistics.metrics import CRITERION, D_PRIME, SEVERITY_SHIFT
from cardiolens.score.statistics.statistic import scale
from cardiolens.score.statistics.verdict_rows import COMPLETE

Rows = TypeVar("Rows", Items, Reports)

UNREAD = ("parse_error", "contradicted")  # parse statuses of replies that could not be read


def _all_options(items: Items) -> Ints:
    """All options of a set, the last of a choice."""
    sizes = _sizes(items)
    return np.where(items.answer_type == "multi", (1 << sizes) - 1, 1 << (sizes - 1))


def _sizes(items: Items) -> Ints:
    """Number of options of each item: the most that is known of its subtask, as items that were not judged
    tell none; at least two.
    """
    _, subtask = np.unique(items.subtask, return_inverse=True)
    of_gold = np.ceil(np.log2(items.gold + 1.0)).astype(np.int64)
    most = np.full(int(subtask.max(initial=-1)) + 1, 2)
    np.maximum.at(most, subtask, np.maximum(items.options, of_gold))
    return np.asarray(most[subtask])


_FILLS: Mapping[str, Callable[[Items], Ints]] = {
    "right": lambda items: items.gold,
    "wrong": lambda items: np.zeros_like(items.gold),
    "normal": lambda items: np.ones_like(items.gold),
    "abnormal": _all_options,
    "opposite": lambda items: np.where(items.gold == 1, _all_options(items), 1),
}
# what a missing answer is at the low and at the high end
_ENDS: Mapping[str, tuple[str, str]] = {
    "mean_cardinality": ("normal", "abnormal"),
    SEVERITY_SHIFT: ("normal", "abnormal"),
    CRITERION: ("abnormal", "normal"),
    D_PRIME: ("opposite", "right"),
}
_OF_SCORES = ("wrong", "right")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Numbers of items, and the difference had those that fell out or were not read been wrong or right."""

    n_dropped: int
    n_unread: int
    n_requested: int
    low: float
    high: float

    @property
    def is_incomplete(self) -> bool:
        """Return whether more than 1 % of the items fell out."""
        return self.n_dropped > (1 - COMPLETE) * self.n_requested

    def columns(self, metric: str) -> dict[str, Any]:
        """The columns of a comparison."""
        return {
            "n_dropped": self.n_dropped + self.n_unread,
            "low_bound": scale(metric) * self.low,
            "high_bound": scale(metric) * self.high,
            "is_incomplete": self.is_incomplete,
        }


def bounds(
    ours: Sequence[Answers], theirs: Sequence[Answers], common: Answers, min_n: int
) -> dict[Key, Bounds]:
    """Bounds of the mean difference of arms over all requested items, by claimable statistic.

    `common` are the rows behind the difference. At the low end every answer that our side lacks is what
    lowers the statistic (of a score: wrong), and every one that theirs lacks is what raises it; at the high
    end the reverse. A reply that was not read is an answer that a side lacks. Empty if there are none.
    """
    every = [*ours, *theirs]
    requested = every[0]
    for arm_answers in every[1:]:
        requested = requested.joined_with(
            arm_answers.among(requested.items.question, requested.reports.question, out=True)
        )
    known = common
    for arm_answers in every:
        of_arm = _where_read(arm_answers)
        known = known.among(of_arm.items.question, of_arm.reports.question)
    if len(requested) == len(known):
        return {}
    by_fill = {
        fill: [_mean([_values(arm, requested, fill, min_n) for arm in side]) for side in (ours, theirs)]
        for fill in _FILLS
    }
    limits = {}
    for key in by_fill["right"][0]:
        n_requested, n_common, n_known = (
            len(of_fields(answers.in_scope(key[1]))) for answers in (requested, common, known)
        )
        worst, best = (by_fill[fill] for fill in _ENDS.get(key[0], _OF_SCORES))
        limits[key] = Bounds(
            n_requested - n_common,
            n_common - n_known,
            n_requested,
            worst[0][key] - best[1][key],
            best[0][key] - worst[1][key],
        )
    return {key: limit for key, limit in limits.items() if limit.n_dropped or limit.n_unread}


def _where_read(answers: Answers) -> Answers:
    """The judged rows but those of replies that were not read: what they answer is not known."""
    judged = answers.where_judged()
    return replace(judged, items=judged.items.where(~np.isin(judged.items.parse_status, UNREAD)))


def _mean(values: Sequence[Mapping[Key, float]]) -> dict[Key, float]:
    return {key: float(np.mean([of_arm[key] for of_arm in values])) for key in values[0]}


def _values(arm: Answers, requested: Answers, fill: str, min_n: int) -> dict[Key, float]:
    """Statistics of an arm with every missing answer filled in; of reports, as right or wrong."""
    read = _where_read(arm)
    lacking = requested.among(read.items.question, read.reports.question, out=True)
    filled = read.joined_with(_filled(lacking, fill))
    filled = replace(filled, items=_of_one(filled.items), reports=_of_one(filled.reports))
    cells = Cells.of(filled, 1)
    return {key: float(value[0]) for key, value in claimed_values(cells.parts, cells.rows, min_n).items()}


def _filled(lacking: Answers, fill: str) -> Answers:
    items, reports = lacking.items, lacking.reports
    number = reports.gold.sum(axis=1)
    counts = np.zeros_like(reports.counts)
    counts[:, reports.names.index("tp" if fill == "right" else "fn")] = number
    return Answers(replace(items, parsed=_FILLS[fill](items)), replace(reports, counts=counts))


def _of_one(rows: Rows) -> Rows:
    """Assign all rows to one patient."""
    return replace(rows, patient=np.zeros_like(rows.patient))
