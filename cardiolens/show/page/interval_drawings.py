"""Drawings of the first screen: estimates with their intervals as line segments in a box of 200 x 60."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cardiolens.score.statistics.hypothesis_tests import MARGIN
from cardiolens.show.page.elements import Answer, Estimate

WIDTH, HEIGHT = 200.0, 60.0
_MIN_REACH = 5.0  # points on either side of zero that a drawing shows at least


@dataclass(frozen=True, slots=True)
class Mark:
    """One estimate: a dot at (at, y) and a segment from `low` to `high`, in units of the box."""

    label: str
    tone: str
    y: float
    at: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Strip:
    """Marks by ascending y, the labels of the scale, and the band of equivalence if there is one."""

    marks: tuple[Mark, ...]
    ends: tuple[str, str, str]  # labels at the left end, the middle and the right end
    zero: float
    band: tuple[float, float] | None


def strip(answer: Answer) -> Strip | None:
    """Lay out the drawing of an answer; None where no estimate is defined."""
    estimates = [estimate for estimate in answer.estimates if not math.isnan(estimate.value)]
    if not estimates:
        return None
    if not answer.differences:
        return Strip(_marks(estimates, 0.0, 100.0), ("0", "50", "100 %"), 0.0, None)
    reach = max(_MIN_REACH, *(abs(end) for estimate in estimates for end in _ends(estimate)))
    reach = math.ceil(reach / 5) * 5.0
    band = (_x(-MARGIN, -reach, reach), _x(MARGIN, -reach, reach))
    words = (f"−{reach:g}", "0", f"+{reach:g} points")
    return Strip(_marks(estimates, -reach, reach), words, WIDTH / 2, band)


def _marks(estimates: Sequence[Estimate], low: float, high: float) -> tuple[Mark, ...]:
    step = HEIGHT / len(estimates)
    return tuple(
        Mark(
            estimate.label,
            estimate.tone,
            round((place + 0.5) * step, 2),
            *(_x(value, low, high) for value in (estimate.value, *_ends(estimate))),
        )
        for place, estimate in enumerate(estimates)
    )


def _ends(estimate: Estimate) -> tuple[float, float]:
    return (estimate.value, estimate.value) if math.isnan(estimate.low) else (estimate.low, estimate.high)


def _x(value: float, low: float, high: float) -> float:
    return round(WIDTH * (value - low) / (high - low), 2)
