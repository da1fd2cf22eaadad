"""Answers to all requests, judged or not: picked options and reports."""

from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cardiolens.score.statistics.items import Bools, Ints, Items, items
from cardiolens.score.statistics.name_codes import Vocabulary
from cardiolens.score.statistics.report_scores import Reports

Rows = TypeVar("Rows", Items, Reports)


@dataclass(frozen=True, slots=True)
class Answers:
    """Rows of a table of verdicts; `patient` indexes the sorted patients of the whole table."""

    items: Items
    reports: Reports

    @staticmethod
    def of(verdicts: pa.Table, patients: list[str]) -> "Answers":
        """Read the judged rows of a table."""
        return Answers.from_verdicts(verdicts, patients).where_judged()

    @staticmethod
    def from_verdicts(
        verdicts: pa.Table,
        patients: list[str],
        vocabulary: Vocabulary | None = None,
        hospitals: Ints | None = None,
    ) -> "Answers":
        """Read all rows of a table; for a part of a table, pass the vocabulary of the whole.

        `hospitals` are codes of the patients' hospitals, where these are random as well.
        """
        given = patients, vocabulary or Vocabulary.of(verdicts), hospitals
        return Answers(items(verdicts, *given), Reports.of(verdicts, *given))

    def where_judged(self, judged: bool = True) -> "Answers":
        """The judged rows, or the unjudged ones."""
        items, reports = self.items, self.reports
        return Answers(items.where(items.judged == judged), reports.where(reports.judged == judged))

    @property
    def arms(self) -> list[str]:
        """The arms that have a judged row, sorted."""
        return sorted({*map(str, np.unique(self.items.arm)), *map(str, np.unique(self.reports.arm))})

    def of_arm(self, arm: str) -> "Answers":
        """The rows of one arm."""
        items, reports = self.items, self.reports
        return Answers(items.where(_rows(items.arm, arm)), reports.where(_rows(reports.arm, arm)))

    def of_patients(self, in_group: Bools) -> "Answers":
        """The rows of some patients of the cohort."""
        items, reports = self.items, self.reports
        return Answers(items.where(in_group[items.patient]), reports.where(in_group[reports.patient]))

    def common_with(self, other: "Answers") -> "Answers":
        """The rows whose question occurs in the other answers too."""
        return self.among(other.items.question, other.reports.question)

    def among(self, items: Ints, reports: Ints, *, out: bool = False) -> "Answers":
        """The rows of the given questions, or with `out` of all others."""
        return Answers(
            self.items.where(np.isin(self.items.question, items, invert=out)),
            self.reports.where(np.isin(self.reports.question, reports, invert=out)),
        )

    def joined_with(self, other: "Answers") -> "Answers":
        """Concatenate with the rows of another part of the table; the result is not sorted."""
        return Answers(_concatenated(self.items, other.items), _concatenated(self.reports, other.reports))

    def in_scope(self, scope: str) -> Items | Reports:
        """The rows behind a statistic of this scope: `tier:1`, `sequence:cine`, `subtask:C10`."""
        kind, _, name = scope.partition(":")
        if scope == "tier:2":
            return self.reports
        if kind == "tier":
            return self.items.where(self.items.tier == int(name))
        if kind == "sequence":
            return self.items.where((self.items.tier == 1) & (self.items.sequence == name))
        of_subtask = self.items.where(self.items.subtask == name)
        return of_subtask if len(of_subtask) else self.reports.where(self.reports.subtask == name)

    def __len__(self) -> int:
        return len(self.items) + len(self.reports)


def _concatenated(first: Rows, second: Rows) -> Rows:
    pairs = {field.name: (getattr(first, field.name), getattr(second, field.name)) for field in fields(first)}
    columns = {name: pair for name, pair in pairs.items() if isinstance(pair[0], np.ndarray)}
    return replace(first, **{name: np.concatenate(pair) for name, pair in columns.items()})


def _rows(arms: NDArray[np.str_], arm: str) -> slice:
    """Slice of an arm in a sorted column."""
    return slice(int(np.searchsorted(arms, arm, "left")), int(np.searchsorted(arms, arm, "right")))
