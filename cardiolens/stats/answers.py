"""All that was judged: picked answers and reports."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cardiolens.stats.items import Bools, Items, items
from cardiolens.stats.reports import Reports


@dataclass(frozen=True, slots=True)
class Answers:
    """Judged rows of a table of verdicts; `patient` counts the sorted patients of the whole table."""

    items: Items
    reports: Reports

    @staticmethod
    def of(verdicts: pa.Table, patients: list[str]) -> "Answers":
        """The judged rows of a table."""
        return Answers(items(verdicts, patients), Reports.of(verdicts, patients))

    @property
    def arms(self) -> list[str]:
        """The arms that have a judged row, sorted."""
        return sorted({*map(str, np.unique(self.items.arm)), *map(str, np.unique(self.reports.arm))})

    def of_arm(self, arm: str) -> "Answers":
        """The rows of one arm."""
        items, reports = self.items, self.reports
        return Answers(items.where(_rows(items.arm, arm)), reports.where(_rows(reports.arm, arm)))

    def of_patients(self, chosen: Bools) -> "Answers":
        """The rows of some patients of the cohort."""
        items, reports = self.items, self.reports
        return Answers(items.where(chosen[items.patient]), reports.where(chosen[reports.patient]))

    def common_with(self, other: "Answers") -> "Answers":
        """The rows whose question the other arm was judged on as well."""
        return Answers(
            self.items.where(np.isin(self.items.question, other.items.question)),
            self.reports.where(np.isin(self.reports.question, other.reports.question)),
        )

    def in_scope(self, scope: str) -> Items | Reports:
        """The rows that a statistic of this scope rests on: `tier:1`, `sequence:cine`, `subtask:C10`."""
        kind, _, name = scope.partition(":")
        if scope == "tier:2":
            return self.reports
        if kind == "tier":
            return self.items.where(self.items.tier == int(name))
        if kind == "sequence":
            return self.items.where((self.items.tier == 1) & (self.items.sequence == name))
        chosen = self.items.where(self.items.subtask == name)
        return chosen if len(chosen) else self.reports.where(self.reports.subtask == name)

    def __len__(self) -> int:
        return len(self.items) + len(self.reports)


def _rows(arms: NDArray[np.str_], arm: str) -> slice:
    """Where an arm stands in a sorted column."""
    return slice(int(np.searchsorted(arms, arm, "left")), int(np.searchsorted(arms, arm, "right")))
