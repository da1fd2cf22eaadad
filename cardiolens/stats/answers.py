"""All that was judged: picked answers and reports."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cardiolens.stats.items import Items, items
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
        return Answers(self.items.where(self.items.arm == arm), self.reports.where(self.reports.arm == arm))
