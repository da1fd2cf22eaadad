"""Sentences that a paper could print, each no stronger than its interval."""

import math
from dataclasses import dataclass

from cardiolens.stats.bootstrap import Interval
from cardiolens.stats.inference import MARGIN, Support, equivalent, minimum_detectable, wilson
from cardiolens.stats.rows import Row

LEVEL = 0.05
FEWEST_PATIENTS = 20  # with fewer a percentile bootstrap is too narrow for any claim (docs/statistics.md)
_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim, whether the data carry it, and the sentence that says so."""

    verdict: Support
    sentence: str


def equivalence(ours: str, theirs: str, where: str, row: Row) -> Finding:
    """Of two protocols within the margin, from a row `primary.equivalence` (90 % interval)."""
    interval = _interval(row)
    verdict = equivalent(interval)
    said = {
        "supported": f"{ours} and {theirs} are equivalent within {MARGIN:g} points on {where}",
        "not supported": f"{ours} and {theirs} differ by more than {MARGIN:g} points on {where}",
        "cannot tell": f"Whether {ours} and {theirs} are equivalent within {MARGIN:g} points on {where} "
        "cannot be told",
    }[verdict]
    return Finding(verdict, f"{said}: difference {_numbers(interval, 90)}, {_patients(row)}.")


def change(cause: str, subject: str, row: Row, adjusted_p: float | None = None) -> Finding:
    """Whether a cause raises a subject, from the row of their difference with its 95 % interval.

    Supported above zero, not supported below; where the interval holds zero, or Holm's p of the comparison is
    above 5 %, nothing is claimed, and the sentence says what this cohort could have shown.
    """
    interval = _interval(row)
    adjusted = "" if adjusted_p is None or math.isnan(adjusted_p) else f", Holm-adjusted p = {adjusted_p:.2g}"
    numbers = f"difference {_numbers(interval, 95)}{adjusted}, {_patients(row)}."
    carried = not adjusted or float(str(adjusted_p)) <= LEVEL
    if interval.low > 0 and carried:
        return Finding("supported", f"{cause} raises {subject}: {numbers}")
    if interval.high < 0 and carried:
        return Finding("not supported", f"{cause} lowers {subject}: {numbers}")
    said = f"{cause} cannot be shown to change {subject}: {numbers}"
    return Finding("cannot tell", said + _power(interval))


def largest(which: str, row: Row) -> Finding:
    """The largest of several differences; its interval is not widened for having been picked."""
    interval = _interval(row)
    verdict: Support = "supported" if interval.low > 0 or interval.high < 0 else "cannot tell"
    numbers = f"{_numbers(interval, 95)} (not adjusted for the choice), {_patients(row)}"
    reaches = "" if verdict == "supported" else "; its interval holds zero"
    return Finding(verdict, f"The largest absolute {which}: difference {numbers}{reaches}.")


def repeated(what: str, row: Row) -> Finding:
    """Whether answers change when the same is asked again, from a row `answers_changed`."""
    interval = _interval(row)
    if interval.value == 0:
        most = 100 * wilson(0, int(str(row["n_patients"]))).high
        bound = f"up to {most:.1f} % of patients may have one that does (Wilson, 95 %)"
        return Finding(
            "not supported", f"Asked the same again, no answer of {what} changed; {bound}: {_patients(row)}."
        )
    numbers = f"{signed(interval.value)} % of answers changed"
    numbers += f", {_ends(interval, 95)}, {_patients(row)}."
    if interval.low > 0:
        return Finding("supported", f"Asked the same again, {what} answers otherwise: {numbers}")
    said = f"Asked the same again, {what} cannot be said to answer otherwise in the long run"
    return Finding("cannot tell", f"{said}: {numbers}")


def threshold(claim: str, row: Row, limit: float, *, beyond: bool = False) -> Finding:
    """That a value reaches or exceeds a limit: its whole interval does, none of it, or it cannot be told."""
    interval = _interval(row)
    numbers = f"{_numbers(interval, 95)}, {_patients(row)}"
    if interval.low > limit or (interval.low == limit and not beyond):
        return Finding("supported", f"{claim}: {numbers}.")
    if interval.high < limit or (interval.high == limit and beyond):
        return Finding("not supported", f"Not so: {claim}: {numbers}.")
    return Finding("cannot tell", f"It cannot be told at this cohort size whether {claim}: {numbers}.")


def tested(claim: str, p: float, detail: str) -> Finding:
    """That a test rejects at 5 %; an undefined or larger p cannot tell."""
    if math.isnan(p):
        return Finding("cannot tell", f"It cannot be told whether {claim}: {detail}, no test possible.")
    if p <= LEVEL:
        return Finding("supported", f"{claim[0].upper()}{claim[1:]}: {detail}, p = {p:.3g}.")
    return Finding("cannot tell", f"It cannot be told whether {claim}: {detail}, p = {p:.3g}.")


def _interval(row: Row) -> Interval:
    """The interval of a row as far as it may be relied on: none with fewer than FEWEST_PATIENTS."""
    value, low, high = (float(str(row[name])) for name in ("value", "low", "high"))
    if int(str(row["n_patients"])) < FEWEST_PATIENTS:
        return Interval(value, math.nan, math.nan)
    return Interval(value, low, high)


def _numbers(interval: Interval, level: int) -> str:
    return f"{signed(interval.value)}, {_ends(interval, level)}"


def _ends(interval: Interval, level: int) -> str:
    if math.isnan(interval.low):
        return "no interval to rely on"
    return f"{level} % CI {signed(interval.low)} to {signed(interval.high)}"


def signed(value: float, places: int = 1) -> str:
    """A number as printed, with a minus sign that is one."""
    return f"{value:.{places}f}".replace("-", "−")


def _patients(row: Row) -> str:
    return f"{row['n_patients']} patients, {row['n_items']} items"


def _power(interval: Interval) -> str:
    if math.isnan(interval.low) or interval.high == interval.low:
        return ""
    error = (interval.high - interval.low) / (2 * _NORMAL_95)
    return f" This cohort shows a difference of {minimum_detectable(error):.1f} points with 80 % power."
