"""Differences with what fell out and was not read, as wide rows: families of tests, and what is decided."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cardiolens.score.statistics.bootstrap import FEWEST_FOR_CLAIM, Basis, Interval
from cardiolens.score.statistics.counting import EXTRA_METRICS, Key
from cardiolens.score.statistics.hypothesis_tests import (
    MARGIN,
    MarginSide,
    adjusted,
    beyond_p,
    equivalence_p,
    margin_side,
)
from cardiolens.score.statistics.statistic import Row, Statistic, as_row, scale
from cardiolens.score.statistics.verdict_rows import COMPLETE

LEVEL = 0.05
# factors that a run varies: what models do in single settings is explored, and claimed over all
RUN = ("selector", "budget", "prompt", "control")
VARIED = "what the run varied"
_FIFTH = 0.2  # share of a difference from which it comes of what was not read
_TESTS = ("p", "within_p", "beyond_p")


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
        size = sum(not math.isnan(row["p"]) for row in of_family if row.get("p") is not None)
        for row in of_family:
            row["family_size"] = size


def concluded(rows: Sequence[Row]) -> list[Row]:
    """The rows with adjusted p-values, and with what they allow to say."""
    adjust(rows)
    return [row | decided(row) for row in rows]


class Effect(NamedTuple):
    """A difference, as a fraction, its reach over answers that are not known, and counts of these."""

    statistic: Statistic
    low: float  # had the missing answers been wrong on our side and right on the other
    high: float  # had they been the reverse
    read: float  # the difference on the items that were read on both sides
    n_read: int
    n_unread: int = 0  # replies of our side that were not read
    n_unread_versus: int = 0
    n_missing: int = 0  # items that were not judged
    n_dropped: int = 0  # these, and items with replies that could not be read
    n_asked: int = 0
    n_same: int = 0  # items with the same request on both sides

    @staticmethod
    def of(difference: Statistic) -> "Effect":
        """The effect that a difference is where all was judged and read."""
        value = float(difference.values[0])
        return Effect(difference, value, value, value, difference.basis.n_items)

    def times(self, weight: float) -> "Effect":
        """This effect with a weight; a negative one exchanges the sides."""
        low, high = sorted((weight * self.low, weight * self.high))
        unread, versus = (self.n_unread, self.n_unread_versus)[:: 1 if weight > 0 else -1]
        return self._replace(
            statistic=replace(self.statistic, values=weight * self.statistic.values),
            low=low,
            high=high,
            read=weight * self.read,
            n_unread=unread,
            n_unread_versus=versus,
        )

    def row(self, key: Key, method: str, *, against_margin: bool = True) -> Row:
        """The row of a comparison, without its p; of scores with the tests against the margin."""
        unit, row = scale(key[0]), comparison(key, self.statistic, method, against_margin=against_margin)
        if against_margin:
            row["n_same_request"] = self.n_same
        if self.n_dropped:
            row |= {"n_dropped": self.n_dropped, "low_bound": unit * self.low, "high_bound": unit * self.high}
            row["is_incomplete"] = self.n_missing > (1 - COMPLETE) * self.n_asked
        if self.n_unread + self.n_unread_versus:
            row |= {"read_difference": unit * self.read, "n_read": self.n_read}
            row |= {"n_unread": self.n_unread, "n_unread_versus": self.n_unread_versus}
        return row


def comparison(key: Key, difference: Statistic, method: str, *, against_margin: bool = True) -> Row:
    """The row of a difference on a tier with its intervals; of scores also the tests against the margin."""
    (metric, tier), found = key, as_row(key, difference, method)
    names = ("metric", "low", "high", "n_items", "n_patients", "method")
    row: Row = {name: found[name] for name in names}
    row |= {"tier": int(tier.removeprefix("tier:")), "difference": found["value"]}
    if metric == "primary" and against_margin:
        at_90, units = difference.interval(metric, level=0.9), int(difference.basis.units)
        row |= {"low_90": at_90.low, "high_90": at_90.high}
        row["within_p"] = equivalence_p(at_90, units)
        row["beyond_p"] = beyond_p(at_90, units)
    return row


def total(effects: Sequence[Effect]) -> Effect:
    """The sum of effects; its basis counts all of their items."""
    values = np.sum([effect.statistic.values for effect in effects], axis=0)
    basis = joined([effect.statistic.basis for effect in effects])
    reach = {name: sum(getattr(effect, name) for effect in effects) for name in Effect._fields[1:]}
    return Effect(Statistic(values, basis, of_pairs=True), **reach)


def mean(effects: Sequence[Effect]) -> Effect:
    """The mean of effects, of equal weight."""
    return total([effect.times(1 / len(effects)) for effect in effects])


def joined(bases: Sequence[Basis], note: str = "", *, n_arms: int = 1) -> Basis:
    """The basis of a mean over arms or pairs: all items are counted, and it is worth those of one of them.

    Models share their patients and items, so a mean over them is known no better than one of them may be.
    """
    return Basis(
        n_items=sum(basis.n_items for basis in bases),
        n_patients=max(basis.n_patients for basis in bases),
        n_parse_error=sum(basis.n_parse_error for basis in bases),
        n_refusal=sum(basis.n_refusal for basis in bases),
        note=note,
        n_effective=min(basis.n_effective for basis in bases),
        effective_items=min(min(basis.effective_items, basis.n_entities or basis.n_items) for basis in bases),
        n_entities=sum(basis.n_entities for basis in bases),
        n_arms=n_arms,
        n_hospitals=bases[0].n_hospitals,
        hospital_inflation=max(basis.hospital_inflation for basis in bases),
    )
