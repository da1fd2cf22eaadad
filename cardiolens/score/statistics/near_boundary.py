"""Intervals where resamples hardly vary: shares near 0 or 100 %, and arms that hardly differ (17.2).

A bootstrap shows only the errors that the cohort has: of 20 patients who are all right it says "100 to 100".
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cardiolens.score.statistics.items import Floats

Kind = Literal["share", "difference", "other"]
Ends = tuple[float, float]

# Errors, successes or differing answers, in effective items, below which resamples are not relied on. Near 0
# or 1 the bootstrap of a share covered 91 % with 27 of them at a design effect of 3, in the middle it covers.
FEWEST_EVENTS = 10
_FEWEST_NEAR = 30
# Design effect over patients that is assumed where too few events show it; never more than the items of a
# patient. Estimated from two or three errors it is noise, and none can be estimated without an error.
DESIGN_EFFECT = 3.0
# From this share on both sides, the design effect is estimated even with few events (Korn and Graubard).
_MIDDLE = 0.2


@dataclass(frozen=True, slots=True)
class Sample:
    """How much a statistic rests on; where classes weigh alike, small ones make it worth less."""

    items: float
    patients: float
    effective_items: float  # whose mean would vary as much
    effective_patients: float  # by whom the variance is known

    @property
    def assumed_effect(self) -> float:
        """The design effect over patients where too few events show it."""
        return min(max(self.items / self.patients, 1.0), DESIGN_EFFECT)


def share_ends(value: float, variance: float, sample: Sample, tail: float) -> Ends | None:
    """Clopper and Pearson's limits of a share of an effective number of items; None away from the boundary.

    The effective number is value (1 - value) / variance (Korn and Graubard, Survey Methodology
    1998;24:193-201), at most that of the sample; near 0 or 1, at most that over the assumed design effect.
    At 0 and 1 it is that most: a variance there is of other items that resamples bring in, as in a risk at
    some coverage. All are fractions.
    """
    from scipy import special, stats

    rarer = min(value, 1 - value)
    estimated = value * (1 - value) / variance if rarer > 0 and variance > 0 else math.inf
    if rarer >= _MIDDLE:
        narrower = float(stats.norm.isf(tail)) / _t_quantile(tail, sample.patients)
        effective = min(sample.effective_items, estimated * narrower**2)
        is_near = min(sample.items, estimated * sample.items / sample.effective_items) * rarer < FEWEST_EVENTS
    else:
        most = sample.effective_items / sample.assumed_effect
        effective, is_near = min(most, estimated), most * rarer < _FEWEST_NEAR
    if not is_near:
        return None
    right, wrong = effective * value, effective * (1 - value)
    low = float(special.betaincinv(right, wrong + 1, tail)) if right > 0 else 0.0
    high = float(special.betaincinv(right + 1, wrong, 1 - tail)) if wrong > 0 else 1.0
    return low, high


def difference_ends(value: float, variance: float, sample: Sample, tail: float) -> Ends | None:
    """Limits of a paired difference by a score test; None where enough answers differ.

    Two arms that differ by d differ on at least |d| of the items, so a true difference x has a
    variance of at least |x| (1 - |x|) / n, as in Tango's score interval (Stat Med 1998;17:891-908), with n
    the effective items over the assumed design effect. The limits are those x that are a t quantile from the
    observed difference.
    """
    if variance * sample.items**2 / sample.assumed_effect >= FEWEST_EVENTS:
        return None
    effective = sample.effective_items / sample.assumed_effect
    reach = _t_quantile(tail, sample.effective_patients)
    high = max(value + reach * math.sqrt(variance), _score_limit(value, effective, reach))
    low = min(value - reach * math.sqrt(variance), -_score_limit(-value, effective, reach))
    return max(low, -1.0), min(high, 1.0)


def _t_quantile(tail: float, patients: float) -> float:
    from scipy import stats

    return float(stats.t.isf(tail, max(patients - 1, 1)))


def _score_limit(value: float, effective: float, reach: float) -> float:
    """The larger x with (x - value)^2 = reach^2 x (1 - x) / effective; -1 if there is none."""
    ratio = reach**2 / effective
    root = (2 * value + ratio) ** 2 - 4 * (1 + ratio) * value**2
    return -1.0 if root < 0 else (2 * value + ratio + math.sqrt(root)) / (2 * (1 + ratio))


def resampled_variance(values: Floats, patients: float) -> float:
    """Variance of a statistic over its resamples (entries 1 on), times n / (n - 1) of the patients."""
    resampled = values[1:][~np.isnan(values[1:])]
    return float(resampled.var()) * patients / max(patients - 1, 1) if len(resampled) else math.nan
