"""Comparisons as wide rows: families of tests, and what is decided."""

import math
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from cardiolens.score.statistics.bootstrap import FEWEST_FOR_CLAIM, Interval
from cardiolens.score.statistics.counting import EXTRA_METRICS
from cardiolens.score.statistics.hypothesis_tests import MARGIN, MarginSide, adjusted, margin_side
from cardiolens.score.statistics.statistic import Row
from cardiolens.storage.schemas import COMPARISONS
from cardiolens.storage.spool import Spool
from cardiolens.storage.tables import from_rows

LEVEL = 0.05
# factors that a run varies: what models do in single settings is explored, and claimed over all
RUN = ("selector", "budget", "prompt", "control")
VARIED = "what the run varied"
_FIFTH = 0.2  # share of a difference from which it comes of what was not read
_TESTS = ("p", "within_p", "beyond_p")
_OF_TESTS = ("family", "adjustment", "family_size", *_TESTS, *(f"{test}_adjusted" for test in _TESTS))
_AT_ONCE = 4096  # rows that are buffered in memory


def reversed_row(row: Row) -> Row:
    """The same comparison in the other direction."""
    swapped = {
        **{"level": "versus", "versus": "level", "arm_id": "versus_arm_id", "versus_arm_id": "arm_id"},
        **{"n_unread": "n_unread_versus", "n_unread_versus": "n_unread"},
    }
    negated = {
        **{"difference": "difference", "read_difference": "read_difference"},
        **{"low": "high", "high": "low", "low_90": "high_90", "high_90": "low_90"},
        **{"low_bound": "high_bound", "high_bound": "low_bound"},
        **{"differing_low_90": "differing_high_90", "differing_high_90": "differing_low_90"},
    }
    turned = {**row, **{name: row.get(other) for name, other in swapped.items()}}
    turned |= {name: -row[other] for name, other in negated.items() if row.get(other) is not None}
    return turned | decided(turned)


def is_reliable(row: Row) -> bool:
    """Return whether a row has an interval that a claim may rest on."""
    return not math.isnan(row["low"]) and row["n_patients"] >= FEWEST_FOR_CLAIM


def comes_of_reading(row: Row) -> bool:
    """Return whether more than a fifth of a difference, or its sign, comes of what was not read."""
    read = row.get("read_difference")
    return read is not None and not abs(row["difference"] - read) <= _FIFTH * abs(row["difference"])


def decided(row: Row) -> Row:
    """What the intervals, tests and bounds of a comparison allow to say.

    A sign is claimed where the 95 % interval lies on one side of zero, the adjusted p is at most 5 %, and no
    values of the dropped items could turn it; of how answers are given only where that does not come of
    replies not read. What is only explored is never claimed.
    """
    return {"decision": _sign(row), "margin": _margin(row)}


def _sign(row: Row) -> str:
    carried = is_reliable(row) and _at_most(row.get("p_adjusted"))
    if not carried or not (row["low"] > 0 or row["high"] < 0):
        return "open"
    if row.get("adjustment") == "fdr":
        return "explored"
    if row["metric"] in EXTRA_METRICS and comes_of_reading(row):
        return "open"
    if row["low"] > 0:
        return "higher" if _keeps(row, 0, math.inf) else "open"
    return "lower" if _keeps(row, -math.inf, 0) else "open"


def _margin(row: Row) -> MarginSide | None:
    """The side of the margin that is shown: also on items with differing requests, for dropped answers."""
    if row.get("low_90") is None or not is_reliable(row) or row.get("adjustment") == "fdr":
        return None
    side = margin_side(Interval(row["difference"], row["low_90"], row["high_90"]))
    if side == "within":
        carried = _at_most(row.get("within_p_adjusted")) and _keeps(row, -MARGIN, MARGIN)
        return "within" if carried and not rests_on_same(row) else None
    low, high = (MARGIN, math.inf) if row["difference"] > 0 else (-math.inf, -MARGIN)
    return side if _at_most(row.get("beyond_p_adjusted")) and _keeps(row, low, high) else None


def rests_on_same(row: Row) -> bool:
    """Return whether an equivalence rests on items that both sides asked by identical requests."""
    same = row.get("n_same_request") or 0
    if not same or same == row["n_items"]:
        return bool(same)
    low, high = row.get("differing_low_90"), row.get("differing_high_90")
    return low is not None and high is not None and margin_side(Interval(0.0, low, high)) != "within"


def _at_most(p: float | None) -> bool:
    return p is not None and p <= LEVEL


def _keeps(row: Row, low: float, high: float) -> bool:
    """Return whether the difference stays within these limits for any values of the dropped items."""
    if row.get("low_bound") is None:
        return True
    return bool(low < row["low_bound"] and row["high_bound"] < high)


def adjust(rows: Sequence[Row]) -> None:
    """Set adjusted p-values in rows that have a `family` and none yet, each kind of test for itself."""
    families: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.get("family") and row.get("p_adjusted") is None:
            families.setdefault((row["family"], row["adjustment"]), []).append(row)
    for (_, adjustment), of_family in families.items():
        for test in _TESTS:
            tested = [row for row in of_family if row.get(test) is not None]
            p_values = adjusted([row[test] for row in tested], "fdr_bh" if adjustment == "fdr" else "holm")
            for row, p in zip(tested, p_values, strict=True):
                row[f"{test}_adjusted"] = float(p)
        size = sum(row.get("p") is not None for row in of_family)
        for row in of_family:
            row["family_size"] = size


class Comparisons:
    """Rows of comparisons, spilled to a file: runs of many models have hundreds of thousands."""

    def __init__(self) -> None:
        self._spool = Spool(COMPARISONS)
        self._rows: list[Row] = []

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows."""
        self._rows.extend({"simulated": False} | row for row in rows)
        if len(self._rows) >= _AT_ONCE:
            self._put_away()

    def parts(self) -> Iterator[pa.Table]:
        """Yield the rows in order, with adjusted p-values and decisions."""
        self._put_away()
        tests = [row for part in self._spool.parts(_OF_TESTS) for row in part.to_pylist()]
        adjust(tests)
        at = 0
        for part in self._spool.parts():
            rows = [row | tests[at + place] for place, row in enumerate(part.to_pylist())]
            at += len(rows)
            yield from_rows([row | decided(row) for row in rows], COMPARISONS)

    def _put_away(self) -> None:
        self._spool.add(from_rows(self._rows, COMPARISONS))
        self._rows = []
