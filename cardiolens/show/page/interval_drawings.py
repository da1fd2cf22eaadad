"""Drawings of the first screen: a row for each estimate, or for each reading where there are too many."""

import math
from dataclasses import dataclass

from cardiolens.score.statistics.hypothesis_tests import MARGIN
from cardiolens.show.page.elements import Card, Estimate

WIDTH = 200.0  # of the box of a row
_STEPS = {"points": 5.0, "z": 0.5}  # a drawing reaches a multiple of it on either side of zero
_MOST_ROWS = 12  # of a drawing: the largest estimates


@dataclass(frozen=True, slots=True)
class StripRow:
    """A row of a drawing: a dot and a segment from low to high, with single models below, or words alone."""

    label: str
    tone: str
    mark: tuple[float, float, float] | None = None  # dot, low and high, in units of the box
    models: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Strip:
    """Rows from top to bottom, the labels of the scale, and the band of equivalence if there is one."""

    rows: tuple[StripRow, ...]
    ends: tuple[str, str, str]  # labels at the left end, the middle and the right end
    zero: float
    band: tuple[float, float] | None


def strip(answer: Card) -> Strip | None:
    """Lay out the drawing of an answer; None where no estimate is defined."""
    estimates = [estimate for estimate in answer.estimates if not math.isnan(estimate.value)]
    if not estimates:
        return None
    if not answer.differences:
        ranked = tuple(_row(estimate, 0.0, 100.0) for estimate in estimates)
        return Strip(ranked, ("0", "50", "100 %"), 0.0, None)
    step = _STEPS[answer.unit]
    places = sorted(range(len(estimates)), key=lambda at: -abs(estimates[at].value))[:_MOST_ROWS]
    shown = [estimates[at] for at in sorted(places)]
    ends = (abs(end) for estimate in shown for end in _ends(estimate))
    reach = math.ceil(max(step, *ends) / step) * step
    band = (_x(-MARGIN, -reach, reach), _x(MARGIN, -reach, reach)) if answer.has_band else None
    words = (f"−{reach:g}", "0", f"+{reach:g} {answer.unit}")
    rows = [_row(estimate, -reach, reach) for estimate in shown]
    if more := len(estimates) - len(shown):
        rows.append(StripRow(f"and {more} smaller, in the table below", "open"))
    return Strip(tuple(rows), words, WIDTH / 2, band)


def _row(estimate: Estimate, low: float, high: float) -> StripRow:
    ends = (estimate.value, estimate.value) if math.isnan(estimate.low) else (estimate.low, estimate.high)
    at, left, right = (_x(value, low, high) for value in (estimate.value, *ends))
    models = tuple(_x(value, low, high) for value in estimate.models)
    return StripRow(estimate.label, estimate.tone, (at, left, right), models)


def _ends(estimate: Estimate) -> tuple[float, ...]:
    """The values of an estimate that a drawing must reach to."""
    if math.isnan(estimate.low):
        return (estimate.value, *estimate.models)
    return (estimate.low, estimate.high, *estimate.models)


def _x(value: float, low: float, high: float) -> float:
    return round(WIDTH * (value - low) / (high - low), 2)
