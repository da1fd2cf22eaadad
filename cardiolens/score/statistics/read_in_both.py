"""Differences on the items whose replies could be read in both arms: what of them is not reading (17.8)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardiolens.score.statistics.answers import Answers, of_fields
from cardiolens.score.statistics.counting import Cells, Key, claimed_values
from cardiolens.score.statistics.items import Items, Reports
from cardiolens.score.statistics.statistic import TIERS, scale

# parse statuses of replies that were read; any other was cut, refused, or could not be parsed
_READ, _READ_AS_IT_IS = "ok", "inconsistent"


@dataclass(frozen=True, slots=True)
class ReadInBoth:
    """A difference on the items read in both arms, as a fraction, and the replies not read in either."""

    value: float
    n_items: int
    n_unread: int
    n_unread_versus: int

    def columns(self, metric: str) -> dict[str, Any]:
        """The columns of a comparison."""
        return {
            "read_difference": scale(metric) * self.value,
            "n_read": self.n_items,
            "n_unread": self.n_unread,
            "n_unread_versus": self.n_unread_versus,
        }

    @property
    def reversed(self) -> "ReadInBoth":
        """The same from the other side."""
        return ReadInBoth(-self.value, self.n_items, self.n_unread_versus, self.n_unread)


def total_of(parts: Sequence[ReadInBoth], shares: Sequence[float]) -> ReadInBoth:
    """The weighted sum of differences, with the counts of all."""
    value = sum(share * part.value for share, part in zip(shares, parts, strict=True))
    items, ours, theirs = (
        sum(getattr(part, name) for part in parts) for name in ("n_items", "n_unread", "n_unread_versus")
    )
    return ReadInBoth(value, items, ours, theirs)


def read_in_both(
    ours: Answers, theirs: Answers, min_n: int, *, complete: bool = False
) -> dict[Key, ReadInBoth]:
    """The claimable differences of two arms on the tiers, on what was read in both.

    Both arms hold the same rows in the same order. Subtasks that the tier means leave out stay out, and so
    do tiers of which all was read, save with `complete`.
    """
    every = (rows for answers in (ours, theirs) for rows in (answers.items, answers.reports))
    if not complete and all(_is_read(rows).all() for rows in every):
        return {}
    sides = [_sufficient(answers, min_n) for answers in (ours, theirs)]
    items, reports = (
        _is_read(getattr(sides[0], kind)) & _is_read(getattr(sides[1], kind)) for kind in ("items", "reports")
    )
    common = [Answers(side.items.where(items), side.reports.where(reports)) for side in sides]
    first, second = (_values(answers) for answers in common)
    counts = {tier: [*_counts(sides, common[0], tier)] for tier in TIERS}
    return {
        key: ReadInBoth(first[key] - second[key], *counts[key[1]])
        for key in first
        if complete or any(counts[key[1]][1:])
    }


def _sufficient(answers: Answers, min_n: int) -> Answers:
    items = answers.items
    names, numbers = np.unique(items.subtask[items.tier == 1], return_counts=True)
    return Answers(items.where(~np.isin(items.subtask, names[numbers < min_n])), answers.reports)


def _is_read(rows: Items | Reports) -> np.ndarray:
    is_read = np.asarray(rows.parse_status == _READ)  # of most arms all; comparing words takes time
    return is_read if is_read.all() else is_read | (rows.parse_status == _READ_AS_IT_IS)


def _values(answers: Answers) -> dict[Key, float]:
    cells = Cells.of(answers, int(max((*answers.items.patient, *answers.reports.patient), default=-1)) + 1)
    sums = [rows.sum(axis=1, keepdims=True) for rows in cells.rows]
    return {key: float(value[0]) for key, value in claimed_values(cells.parts, sums, 1).items()}


def _counts(sides: Sequence[Answers], common: Answers, tier: str) -> Iterator[int]:
    """Numbers of items read in both, and of those not read in the first and in the second arm."""
    yield len(of_fields(common.in_scope(tier)))
    for side in sides:
        yield int((~_is_read(of_fields(side.in_scope(tier)))).sum())
