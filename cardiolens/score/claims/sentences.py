"""Claims as sentences for papers, no stronger than their interval and family of tests allow."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from cardiolens.base.phrasing import counted
from cardiolens.score.claims.evidence_analysis import LEVEL, Evidence, Rows, interval_of
from cardiolens.score.statistics.bootstrap import Interval
from cardiolens.score.statistics.cells import EXTRA_METRICS
from cardiolens.score.statistics.hypothesis_tests import (
    MARGIN,
    MarginSide,
    detectable_difference,
    difference_words,
    margin_side,
    wilson,
)
from cardiolens.score.statistics.outcomes import INCOMPLETE
from cardiolens.score.statistics.read_in_both import ReadInBoth
from cardiolens.score.statistics.rows import OWN_UNIT, Row

_NORMAL_95 = 1.959963984540054
_LEAST_P = 0.001  # smaller p-values are printed as "p < 0.001"


Side = Literal["above", "below"] | MarginSide
Verdict = Literal["supported", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence, and the side on which the data show its value to lie: of zero, a limit or the margin."""

    side: Side | None  # None: they show neither
    sentence: str
    simulated: bool = False  # about a simulated reader, in a run with models

    @property
    def verdict(self) -> Verdict:
        """Whether the sentence holds, whichever side it states."""
        return "cannot tell" if self.side is None else "supported"


def equivalence(
    ours: str,
    theirs: str,
    where: str,
    row: Row,
    rows_by_metric: Mapping[str, Row] = MappingProxyType({}),
    *,
    evidence_of: Callable[[Rows, str], Evidence] = Evidence.of,
) -> Finding:
    """Finding on two protocols within the margin, from a row `primary.equivalence` (90 % interval).

    `rows_by_metric` are all rows of the comparison. Claimed only if it also holds on items whose requests
    differ (protocol 16.7); that they differ by more only where the test against the margin carries it (17.3).
    Where neither is, but a difference is shown, the finding is that difference.
    """
    evidence = evidence_of(rows_by_metric, "primary.equivalence")
    beyond = evidence_of(rows_by_metric, "primary.beyond")
    side: Side | None
    side, rests = _margin_side(row, evidence, beyond)
    pair, margin = f"{ours} and {theirs}", f"{MARGIN:g} points"
    test, beyond_test = _adjusted(evidence), f"{_adjusted(beyond)} for more than {margin}"
    difference, any_difference = rows_by_metric.get("primary", row), Evidence.of(rows_by_metric, "primary")
    if side == "within":
        claim = f"{pair} are equivalent within {margin} on {where}"
    elif side == "beyond":
        claim, test = f"{pair} differ by more than {margin} on {where}", beyond_test
    elif (shown := _side(difference, any_difference)) is not None:
        claim = f"{pair} differ on {where} ({_adjusted(any_difference).removeprefix(', ')})"
        claim, side, test = f"{claim}, and whether by more than {margin} cannot be told", shown, beyond_test
    elif _is_explored(difference, any_difference):
        claim, test = f"{pair} may differ on {where}", _adjusted(any_difference)
    else:
        claim = f"Whether {pair} are equivalent within {margin} on {where} cannot be told"
    numbers = f"difference {_numbers(interval_of(row), 90)}{test}, {_patients(row)}"
    return Finding(side, f"{claim}: {numbers}{_same(row)}{rests}{_dropped_items(evidence)}.")


def _margin_side(row: Row, evidence: Evidence, beyond: Evidence) -> tuple[MarginSide | None, str]:
    """The side of the margin that is shown, and a remark if it depends on a part of the items."""
    side = margin_side(interval_of(row))
    same, number = row.get("n_same_request"), int(str(row["n_items"]))
    if side == "within":
        if same and same == number:
            return None, "; every request is identical in both, so nothing was compared"
        if same and evidence.differing is not None:
            differing_interval = interval_of(evidence.differing)
            if margin_side(differing_interval) != "within":
                numbers = f"difference {_numbers(differing_interval, 90)}"
                return None, f"; it rests on identical requests, without them {numbers}"
        carried = evidence.carried and evidence.keeps(-MARGIN, MARGIN)
        return ("within" if carried else None), ""
    low, high = (MARGIN, math.inf) if float(str(row["value"])) > 0 else (-math.inf, -MARGIN)
    return (side if beyond.carried and beyond.keeps(low, high) else None), ""


def _same(row: Row) -> str:
    same, number = row.get("n_same_request"), int(str(row["n_items"]))
    if same is None or not number:
        return ""
    return f", {100 * int(str(same)) / number:.0f} % of them asked by identical requests"


def change(cause: str, subject: str, row: Row, evidence: Evidence) -> Finding:
    """Finding on a cause that may raise a subject, from the row of their difference with its 95 % interval.

    Nothing is claimed where the interval holds zero, Holm's p is above 5 % or there is none, or dropped items
    could turn the sign (protocol 16.3, 16.6), nor where the comparison is exploratory (17.6), nor of how
    answers are given where it comes of replies not read (17.8).
    """
    interval = interval_of(row)
    numbers = f"difference {_numbers(interval, 95, _places(row))}{_adjusted(evidence)}, {_patients(row)}"
    numbers += f"{_dropped_items(evidence, _places(row))}{_reading(row, evidence)}."
    if _is_of_reading(row, evidence):
        return Finding(None, f"{cause} cannot be said to change {subject}: {numbers}")
    side = _side(row, evidence)
    if side is not None:
        return Finding(side, f"{cause} {'raises' if side == 'above' else 'lowers'} {subject}: {numbers}")
    if _is_explored(row, evidence):
        return Finding(None, f"{cause} may {'raise' if interval.low > 0 else 'lower'} {subject}: {numbers}")
    return Finding(None, f"{cause} cannot be shown to change {subject}: {numbers}{_power(row, evidence)}")


def _side(row: Row, evidence: Evidence) -> Literal["above", "below"] | None:
    """The side of zero on which a difference is shown to lie."""
    interval = interval_of(row)
    if evidence.carried and not _is_of_reading(row, evidence):
        if interval.low > 0 and evidence.keeps(0, math.inf):
            return "above"
        if interval.high < 0 and evidence.keeps(-math.inf, 0):
            return "below"
    return None


def _is_of_reading(row: Row, evidence: Evidence) -> bool:
    """Whether it is a difference of how answers are given, and comes of replies not read (17.8)."""
    return str(row["metric"]) in EXTRA_METRICS and _comes_of_reading(float(str(row["value"])), evidence)


def _is_explored(row: Row, evidence: Evidence) -> bool:
    """Whether a difference that no sentence may claim has passed its false discovery rate."""
    interval = interval_of(row)
    passes = evidence.exploratory and evidence.adjusted_p <= LEVEL
    return passes and (interval.low > 0 or interval.high < 0)


def largest(description: str, row: Row, evidence: Evidence) -> Finding:
    """Finding on the largest of several differences, adjusted like its family."""
    side = _side(row, evidence)
    numbers = f"{_numbers(interval_of(row), 95)}{_adjusted(evidence)}, {_patients(row)}"
    reaches = "; explored, not claimed" if _is_explored(row, evidence) else "; it cannot be told from none"
    reaches = "" if side else reaches
    return Finding(
        side,
        f"The largest absolute {description}: difference {numbers}{_dropped_items(evidence)}{reaches}.",
    )


def repetition(subject: str, row: Row, evidence: Evidence) -> Finding:
    """Finding on answers that change when a request is repeated, from a row `answers_changed`."""
    interval = interval_of(row)
    if interval.value == 0:
        most = 100 * wilson(0, int(str(row["n_patients"]))).high
        limit = f"up to {most:.1f} % of patients may have one that does (Wilson, 95 %)"
        return Finding(
            "within", f"Asked the same again, no answer of {subject} changed; {limit}: {_arm_items(row)}."
        )
    numbers = f"{signed(interval.value)} % of answers changed"
    numbers += f", {_ends(interval, 95)}{_adjusted(evidence)}, {_arm_items(row)}."
    if interval.low > 0 and evidence.carried:
        return Finding("above", f"Asked the same again, {subject} answers otherwise: {numbers}")
    claim = f"Asked the same again, {subject} cannot be said to answer otherwise in the long run"
    return Finding(None, f"{claim}: {numbers}")


def threshold(claim: str, row: Row, limit: float, evidence: Evidence, *, beyond: bool = False) -> Finding:
    """Finding that a value reaches or exceeds a limit: its whole interval does, none of it, or it is open.

    `evidence` that it differs from the limit must carry either claim.
    """
    interval = interval_of(row)
    numbers = f"{_numbers(interval, 95)}{_adjusted(evidence)}, {_arm_items(row)}"
    if evidence.carried:
        if interval.low > limit or (interval.low == limit and not beyond):
            return Finding("above", f"{claim}: {numbers}.")
        if interval.high < limit or (interval.high == limit and beyond):
            return Finding("below", f"Not so: {claim}: {numbers}.")
    return Finding(None, f"It cannot be told at this cohort size whether {claim}: {numbers}.")


def hypothesis(claim: str, side: Side, p: float, detail: str, family: str = "") -> Finding:
    """Finding on a claim that a value lies on a side, whose test has this p in its family: shown at 5 %."""
    test = f"{family}{_chance(p, 3)}" if p >= 0 else "no test possible"
    if p <= LEVEL:
        return Finding(side, f"{claim[0].upper()}{claim[1:]}: {detail}, {test}.")
    return Finding(None, f"It cannot be told whether {claim}: {detail}, {test}.")


def _numbers(interval: Interval, level: int, places: int = 1) -> str:
    return f"{signed(interval.value, places)}, {_ends(interval, level, places)}"


def _ends(interval: Interval, level: int, places: int = 1) -> str:
    if math.isnan(interval.low):
        return "no interval to rely on"
    return f"{level} % CI {signed(interval.low, places)} to {signed(interval.high, places)}"


def _places(row: Row) -> int:
    """Decimals of a value: one of percent, two of a metric with a unit of its own."""
    return 2 if str(row["metric"]) in OWN_UNIT else 1


def signed(value: float, places: int = 1) -> str:
    """Format a number, with a typographic minus sign."""
    return "undefined" if math.isnan(value) else f"{value:.{places}f}".replace("-", "−")


def _patients(row: Row) -> str:
    return f"{counted(row['n_patients'], 'patient')}, {counted(row['n_items'], 'item')}"


def _arm_items(row: Row) -> str:
    """The patients and items of one arm, and the share of judged items if incomplete."""
    first = str(row["method"]).partition(";")[0]
    return f"{_patients(row)} ({first})" if first.startswith(INCOMPLETE) else _patients(row)


def _chance(p: float, digits: int = 2) -> str:
    """Format a p-value; below 0.001 neither resampling nor a normal tail is exact."""
    return f"p < {_LEAST_P:g}" if p < _LEAST_P else f"p = {p:.{digits}g}"


def _adjusted(evidence: Evidence) -> str:
    declared = f", {evidence.declared}" if evidence.declared else ""
    if math.isnan(evidence.adjusted_p):
        return f", not tested{declared}"
    if evidence.alone:
        return f", {_chance(evidence.adjusted_p)}, declared before the run and tested alone"
    if evidence.exploratory:
        rate = _chance(evidence.adjusted_p).removeprefix("p ")
        return f", exploratory, false discovery rate {rate} over {evidence.comparisons}"
    return f", {_chance(evidence.adjusted_p)} after Holm over {evidence.comparisons}{declared}"


def _dropped_items(evidence: Evidence, places: int = 1) -> str:
    """The number of dropped items, and the bounds of the difference over their possible values."""
    row = evidence.bounds
    if row is None:
        return ""
    low, high = (signed(float(str(row[name])), places) for name in ("low", "high"))
    what = "fell out or could not be read" if " not read" in str(row["method"]) else "fell out"
    state = f"{INCOMPLETE}, " if str(row["method"]).startswith(INCOMPLETE) else ""
    return f"; {state}{counted(row['n_items'], 'item')} {what}, with them between {low} and {high}"


def _comes_of_reading(difference: float, evidence: Evidence) -> bool:
    return evidence.read is not None and ReadInBoth.of_row(evidence.read).explains(difference)


def _reading(row: Row, evidence: Evidence) -> str:
    """The difference on what was read in both arms, where much of it comes of reading (17.8)."""
    if evidence.read is None or not _comes_of_reading(float(str(row["value"])), evidence):
        return ""
    read = ReadInBoth.of_row(evidence.read)
    counts = f"{read.n_unread} against {read.n_unread_theirs} replies were cut, refused or not parsed"
    value = signed(read.value, _places(row))
    return f"; {counts}, and on {counted(read.n_items, 'item')} read in both it is {value}"


def _power(row: Row, evidence: Evidence) -> str:
    """The difference detectable in this cohort, at the level of Holm's first step."""
    interval = interval_of(row)
    if math.isnan(interval.low) or interval.high == interval.low or evidence.exploratory:
        return ""
    error = (interval.high - interval.low) / (2 * _NORMAL_95)
    difference = detectable_difference(error, evidence.comparisons)
    among = f" among {evidence.comparisons} comparisons" if evidence.comparisons > 1 else ""
    is_share = str(row["metric"]) not in OWN_UNIT
    words = difference_words(difference) if is_share else f"a difference of {difference:.2f}"
    return f" This cohort shows {words} with 80 % power{among}."
