"""Drawings of the first screen: a row for each estimate, or for each reading where there are too many."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cardiolens.score.statistics.hypothesis_tests import MARGIN
from cardiolens.show.page.columns import READINGS
from cardiolens.show.page.elements import Card, Estimate

WIDTH = 200.0  # of the box of a row
_STEPS = {"points": 5.0, "z": 0.5}  # a drawing reaches a multiple of it on either side of zero
_MOST_ROWS = 12  # estimates with a row of their own; more are counted in bins, by their reading
_BINS = 40


@dataclass(frozen=True, slots=True)
class Mark:
    """One estimate: a dot at `at`, and a segment from `low` to `high`, in units of the box."""

    at: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One bin of many estimates: where it begins, how wide it is, and its share of the highest bin."""

    start: float
    width: float
    share: float


@dataclass(frozen=True, slots=True)
class StripRow:
    """A row of a drawing: one estimate with those of single models below it, or the bins of one reading."""

    label: str
    tone: str
    mark: Mark | None = None
    models: tuple[float, ...] = ()
    bars: tuple[Bar, ...] = ()


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
    is_binned = len(estimates) > _MOST_ROWS
    step = _STEPS[answer.unit]
    ends = (abs(end) for estimate in estimates for end in _ends(estimate, is_binned))
    reach = math.ceil(max(step, *ends) / step) * step
    band = (_x(-MARGIN, -reach, reach), _x(MARGIN, -reach, reach)) if answer.has_band else None
    words = (f"−{reach:g}", "0", f"+{reach:g} {answer.unit}")
    rows = _binned(estimates, reach) if is_binned else [_row(entry, -reach, reach) for entry in estimates]
    return Strip(tuple(rows), words, WIDTH / 2, band)


def _row(estimate: Estimate, low: float, high: float) -> StripRow:
    ends = (estimate.value, estimate.value) if math.isnan(estimate.low) else (estimate.low, estimate.high)
    mark = Mark(*(_x(value, low, high) for value in (estimate.value, *ends)))
    models = tuple(_x(value, low, high) for value in estimate.models)
    return StripRow(estimate.label, estimate.tone, mark, models)


def _binned(estimates: Sequence[Estimate], reach: float) -> list[StripRow]:
    """A row for each reading: how many estimates have it, and how these spread over the scale."""
    rows = []
    for tone, words in READINGS.items():
        values = [estimate.value for estimate in estimates if estimate.tone == tone]
        if not values:
            continue
        counts = [0] * _BINS
        for value in values:
            counts[min(_BINS - 1, int((value + reach) / (2 * reach) * _BINS))] += 1
        width = WIDTH / _BINS
        bars = tuple(
            Bar(round(place * width, 2), width, round(count / max(counts), 3))
            for place, count in enumerate(counts)
            if count
        )
        rows.append(StripRow(f"{words}: {len(values):,} of {len(estimates):,}", tone, bars=bars))
    return rows


def _ends(estimate: Estimate, is_binned: bool) -> tuple[float, ...]:
    """The values of an estimate that a drawing must reach to."""
    if is_binned or math.isnan(estimate.low):
        return (estimate.value, *estimate.models)
    return (estimate.low, estimate.high, *estimate.models)


def _x(value: float, low: float, high: float) -> float:
    return round(WIDTH * (value - low) / (high - low), 2)
