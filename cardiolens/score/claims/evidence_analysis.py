"""Evidence of a claim besides its interval: family of tests, dropped items, differing requests."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cardiolens.score.statistics.bootstrap import Interval
from cardiolens.score.statistics.differences import DIFFERING
from cardiolens.score.statistics.enough_data import FEWEST_FOR_CLAIM
from cardiolens.score.statistics.hypothesis_tests import holm, interval_p
from cardiolens.score.statistics.multiple_testing import (
    BEYOND_HOLM_P,
    BEYOND_P,
    EQUIVALENCE_HOLM_P,
    EQUIVALENCE_P,
    FDR_P,
    HOLM_P,
    INTERVAL_P,
    SWAP_P,
)
from cardiolens.score.statistics.read_in_both import READ_IN_BOTH
from cardiolens.score.statistics.rows import Row

LEVEL = 0.05
_HOSPITALS = re.compile(r"(\d+) hospitals;")
_RARER = re.compile(r"rarer class (\d+) patient")
_ALONE = {"primary.equivalence": EQUIVALENCE_P, "primary.beyond": BEYOND_P}
_MARGIN_TESTS = {"primary.equivalence": EQUIVALENCE_HOLM_P, "primary.beyond": BEYOND_HOLM_P}
_FAMILY = re.compile(r"(?:Holm|false discovery rate) over (\d+) ")

Place = tuple[str, str, str]  # arm, versus arm, scope
Rows = Mapping[str, Row]  # of one place, by metric


@dataclass(frozen=True, slots=True)
class Evidence:
    """One comparison's p, adjusted over its family, that family's size, and bounds (protocol 16.6)."""

    adjusted_p: float = math.nan  # NaN: in no family, descriptive only
    comparisons: int = 1
    bounds: Row | None = None  # bounds over the values of dropped items
    differing: Row | None = None  # the difference on items whose requests differ
    alone: bool = False  # declared before the run: not in a family with other comparisons
    declared: str = ""  # when it was declared, where answers were there already or may have been
    read: Row | None = None  # the difference on what was read in both arms, where not all was
    exploratory: bool = False  # the p is a false discovery rate, and nothing is claimed (17.6)

    @property
    def carried(self) -> bool:
        """True if the test rejects at 5 % in its family, and a sentence may rest on it."""
        return self.adjusted_p <= LEVEL and not self.exploratory

    def keeps(self, low: float, high: float) -> bool:
        """Return whether the difference stays within these limits for any values of the dropped items."""
        if self.bounds is None:
            return True
        return low < float(str(self.bounds["low"])) and float(str(self.bounds["high"])) < high

    @staticmethod
    def of(rows: Rows, metric: str) -> "Evidence":
        """Read the evidence on one metric from the rows of a comparison at a scope.

        `primary.equivalence` is that two arms are within the margin, `primary.beyond` that they are not.
        """
        equivalence = metric == "primary.equivalence"
        test = _MARGIN_TESTS.get(metric, f"{metric}.{HOLM_P}")
        explored = rows.get(test.replace(HOLM_P, FDR_P))
        test_row = rows.get(test, explored)
        bounds = rows.get(f"{'primary' if metric in _MARGIN_TESTS else metric}.bounds")
        differing = rows.get(DIFFERING) if equivalence else None
        read = rows.get(f"{'primary' if metric in _MARGIN_TESTS else metric}.{READ_IN_BOTH}")
        if test_row is None:
            return Evidence(bounds=bounds, differing=differing, read=read)
        size = _FAMILY.search(str(test_row["method"]))
        number = int(size.group(1)) if size else 1
        p = _p(rows, metric, test_row)
        return Evidence(p, number, bounds, differing, read=read, exploratory=test_row is explored)


def alone(rows: Rows, metric: str) -> Evidence:
    """The evidence on one metric from its own test, in no family with others."""
    test = _ALONE.get(metric)
    tests = [test] if test else [f"{metric}.{suffix}" for suffix in (SWAP_P, INTERVAL_P)]
    p_values = [_p(rows, metric, rows[name]) for name in tests if name in rows]
    p = p_values[0] if p_values else math.nan
    return replace(Evidence.of(rows, metric), adjusted_p=p, comparisons=1, alone=True, exploratory=False)


def _p(rows: Rows, metric: str, test_row: Row) -> float:
    """The p of a test; NaN where its statistic has no interval to rely on."""
    statistic = rows.get("primary.equivalence" if metric in _MARGIN_TESTS else metric)
    reliable = statistic is None or not math.isnan(interval_of(statistic).low)
    return float(str(test_row["value"])) if reliable else math.nan


def places(scores: Sequence[Row]) -> dict[Place, dict[str, Row]]:
    """Index the rows of comparisons by place and metric."""
    rows_by_place: dict[Place, dict[str, Row]] = {}
    for row in scores:
        if row["versus_arm_id"] is not None:
            rows_by_place.setdefault(place(row), {})[str(row["metric"])] = row
    return rows_by_place


def place(row: Row) -> Place:
    """The place of a row."""
    return str(row["arm_id"]), str(row["versus_arm_id"]), str(row["scope"])


def interval_of(row: Row) -> Interval:
    """The interval of a row; NaN ends with fewer than FEWEST_FOR_CLAIM, where it is unreliable."""
    value, low, high = (float(str(row[name])) for name in ("value", "low", "high"))
    if int(str(row["n_patients"])) < FEWEST_FOR_CLAIM:
        return Interval(value, math.nan, math.nan)
    return Interval(value, low, high)


def by_interval(rows: Iterable[Row], limit: float = 0.0) -> list[Evidence]:
    """Evidence that the values of one family of rows differ from a limit, with p from their intervals."""
    all_rows = list(rows)
    p_values = [interval_p(interval_of(row), limit, _worth(row)) for row in all_rows]
    n_tests = sum(not math.isnan(p) for p in p_values)
    return [Evidence(p, max(n_tests, 1)) for p in holm(p_values)]


def _worth(row: Row) -> int:
    """Units whose t distribution a p takes: patients, of an AUROC those of the rarer class, or hospitals."""
    words = (pattern.search(str(row["method"])) for pattern in (_RARER, _HOSPITALS))
    return min([int(str(row["n_patients"])), *(int(number.group(1)) for number in words if number)])
