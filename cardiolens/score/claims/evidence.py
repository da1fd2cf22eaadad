"""Evidence of a sentence beside its interval: its family, items that fell out, requests that differ."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cardiolens.score.statistics.bootstrap import Interval
from cardiolens.score.statistics.differences import DIFFERING
from cardiolens.score.statistics.hypothesis_tests import holm, interval_p
from cardiolens.score.statistics.multiple_testing import EQUIVALENCE_HOLM_P, HOLM_P
from cardiolens.score.statistics.rows import Row

LEVEL = 0.05
FEWEST_PATIENTS = 20  # with fewer a percentile bootstrap is too narrow for any claim (docs/statistics.md)
_FAMILY = re.compile(r"Holm over (\d+) ")

Place = tuple[str, str, str]  # arm, versus arm, scope
Rows = Mapping[str, Row]  # of one place, by metric


@dataclass(frozen=True, slots=True)
class Evidence:
    """One comparison's p after Holm over its family, that family's size, and bounds (protocol 16.6)."""

    adjusted_p: float = math.nan  # NaN: in no family, to be described only
    comparisons: int = 1
    bounds: Row | None = None  # what the items that fell out may do
    differing: Row | None = None  # the difference on items whose requests differ
    alone: bool = False  # declared before the run: no other comparison shares its level

    @property
    def carried(self) -> bool:
        """True if the test rejects at 5 % in its family."""
        return self.adjusted_p <= LEVEL

    def keeps(self, low: float, high: float) -> bool:
        """Return whether the difference stays between these ends whatever items that fell out had said."""
        if self.bounds is None:
            return True
        return low < float(str(self.bounds["low"])) and float(str(self.bounds["high"])) < high

    @staticmethod
    def of(rows: Rows, metric: str) -> "Evidence":
        """The evidence on one metric among the rows of a comparison at a scope."""
        equivalence = metric == "primary.equivalence"
        test_row = rows.get(EQUIVALENCE_HOLM_P if equivalence else f"{metric}.{HOLM_P}")
        bounds = rows.get(f"{metric.removesuffix('.equivalence')}.bounds")
        differing = rows.get(DIFFERING) if equivalence else None
        if test_row is None:
            return Evidence(bounds=bounds, differing=differing)
        size = _FAMILY.search(str(test_row["method"]))
        number = int(size.group(1)) if size else 1
        p = float(str(test_row["value"]))
        if equivalence and int(str(test_row["n_patients"])) < FEWEST_PATIENTS:
            p = math.nan  # it is that of an interval on which nothing rests
        return Evidence(p, number, bounds, differing)


def places(scores: Sequence[Row]) -> dict[Place, dict[str, Row]]:
    """Rows of comparisons by place and metric."""
    rows_by_place: dict[Place, dict[str, Row]] = {}
    for row in scores:
        if row["versus_arm_id"] is not None:
            rows_by_place.setdefault(place(row), {})[str(row["metric"])] = row
    return rows_by_place


def place(row: Row) -> Place:
    """The place of a row."""
    return str(row["arm_id"]), str(row["versus_arm_id"]), str(row["scope"])


def interval_of(row: Row) -> Interval:
    """The interval of a row as far as it may be relied on: none with fewer than FEWEST_PATIENTS."""
    value, low, high = (float(str(row[name])) for name in ("value", "low", "high"))
    if int(str(row["n_patients"])) < FEWEST_PATIENTS:
        return Interval(value, math.nan, math.nan)
    return Interval(value, low, high)


def by_interval(rows: Iterable[Row], limit: float = 0.0) -> list[Evidence]:
    """Evidence that values differ from a limit, of rows that are one family; p is that of their intervals."""
    all_rows = list(rows)
    p_values = [interval_p(interval_of(row), limit, int(str(row["n_patients"]))) for row in all_rows]
    n_tests = sum(not math.isnan(p) for p in p_values)
    return [Evidence(p, max(n_tests, 1)) for p in holm(p_values)]
