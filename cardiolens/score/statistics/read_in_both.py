"""Differences on the items whose replies could be read in both arms: what of them is not reading (17.8)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.cells import Cells, claimed_statistics
from cardiolens.score.statistics.items import Items
from cardiolens.score.statistics.report_scores import Reports
from cardiolens.score.statistics.rows import TIERS, scale
from cardiolens.score.statistics.statistic import Key

READ_IN_BOTH = "read_in_both"  # after the metric
# parse statuses of replies that were read; any other was cut, refused, or could not be parsed
_READ, _READ_AS_IT_IS = "ok", "inconsistent"
_COUNTS = re.compile(r"(\d+) and (\d+) replies not read")
_FIFTH = 0.2


@dataclass(frozen=True, slots=True)
class ReadInBoth:
    """A difference on the items read in both arms, as a fraction, and the replies not read in either."""

    value: float
    n_items: int
    n_unread: int
    n_unread_theirs: int

    def row(self, key: Key) -> dict[str, object]:
        """The row of the table of scores, without its arms and patients."""
        metric, scope = key
        ends = {"value": scale(metric) * self.value, "low": np.nan, "high": np.nan}
        names = {"metric": f"{metric}.{READ_IN_BOTH}", "scope": scope, "n_items": self.n_items}
        return names | ends | {"method": self.counts}

    @property
    def counts(self) -> str:
        """The numbers of replies not read, in words."""
        return f"{self.n_unread} and {self.n_unread_theirs} replies not read"

    @property
    def reversed(self) -> "ReadInBoth":
        """The same from the other side."""
        return ReadInBoth(-self.value, self.n_items, self.n_unread_theirs, self.n_unread)

    @staticmethod
    def of_row(row: Mapping[str, object]) -> "ReadInBoth":
        """Read it from a row, in the unit of its metric."""
        counts = _COUNTS.search(str(row["method"]))
        ours, theirs = map(int, counts.groups()) if counts else (0, 0)
        return ReadInBoth(float(str(row["value"])), int(str(row["n_items"])), ours, theirs)

    def explains(self, difference: float) -> bool:
        """Return whether more than a fifth of a difference, or its sign, comes of what was not read."""
        return not abs(difference - self.value) <= _FIFTH * abs(difference)


def total_of(parts: Sequence[ReadInBoth], shares: Sequence[float]) -> ReadInBoth:
    """The weighted sum of differences, with the counts of all."""
    value = sum(share * part.value for share, part in zip(shares, parts, strict=True))
    items, ours, theirs = (
        sum(getattr(part, name) for part in parts) for name in ("n_items", "n_unread", "n_unread_theirs")
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
        if key[1] in counts and (complete or any(counts[key[1]][1:]))
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
    return {key: float(value[0]) for key, value in claimed_statistics(cells.parts, sums, 1).items()}


def _counts(sides: Sequence[Answers], common: Answers, tier: str) -> Iterator[int]:
    """Numbers of items read in both, and of those not read in the first and in the second arm."""
    yield len(_fields(common, tier))
    for side in sides:
        yield int((~_is_read(_fields(side, tier))).sum())


def _fields(answers: Answers, tier: str) -> Items | Reports:
    rows = answers.in_scope(tier)
    return rows if isinstance(rows, Items) else rows.where(rows.channel == "fields")
