"""Cluster bootstrap by patient as array arithmetic (specification 8.5)."""

from dataclasses import dataclass

import numpy as np

from cardiolens.stats.items import Floats


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with the ends of its interval; ends are NaN where none can be given."""

    value: float
    low: float
    high: float


def resampling_weights(patients: int, resamples: int, seed: int) -> Floats:
    """How often each resample holds each patient: (1 + resamples, patients); row 0 is the cohort itself.

    Every statistic of every arm uses these same weights, so differences between arms are paired.
    """
    if patients == 0:
        return np.ones((1 + resamples, 0))
    drawn = np.random.default_rng(seed).multinomial(patients, np.full(patients, 1 / patients), size=resamples)
    return np.concatenate([np.ones((1, patients)), drawn.astype(np.float64)])


def percentile(values: Floats, level: float = 0.95) -> Interval:
    """The observed value (entry 0) and the percentile interval of the resampled ones.

    Resamples in which the statistic is undefined stay out. Resamples of a single patient say nothing: pass
    `values[:1]` then, and the ends are NaN.
    """
    drawn = values[1:][~np.isnan(values[1:])]
    if len(drawn) == 0 or np.isnan(values[0]):
        return Interval(float(values[0]), np.nan, np.nan)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values[0]), float(low), float(high))
