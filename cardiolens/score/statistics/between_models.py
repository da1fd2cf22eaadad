"""How much an effect differs between models whose estimates share their patients (protocol 17.6)."""

import math
from dataclasses import dataclass

import numpy as np

from cardiolens.score.statistics.bootstrap import Interval
from cardiolens.score.statistics.items import Floats

_FEWEST_MODELS = 3  # from two, a spread is hardly known


@dataclass(frozen=True, slots=True)
class BetweenModels:
    """The standard deviation of models' true effects, and the effect expected of a next model."""

    deviation: Interval
    next_model: Interval


def between_models(effects: Floats, inflation: float, level: float = 0.95) -> BetweenModels | None:
    """Spread over models of effects (model, 1 + resamples), all from the same resamples of patients.

    The spread of the estimates is that of the true effects plus the errors that models do not share: mean
    variance minus mean covariance over the resamples. The interval is the Q-profile (Viechtbauer, Stat Med
    2007;26:37-52) with that error for every model; the prediction interval is that of Higgins et al. (JRSS A
    2009;172:137-159) with n - 1 degrees of freedom. None for fewer than three models.
    """
    from scipy import stats

    number = len(effects)
    if number < _FEWEST_MODELS or np.isnan(effects[:, 0]).any():
        return None
    of_mean, own = errors(effects, inflation)
    if math.isnan(of_mean):
        return None
    squares = float(((effects[:, 0] - effects[:, 0].mean()) ** 2).sum())
    tail, freedom = (1 - level) / 2, number - 1
    low, high = (
        math.sqrt(max(squares / float(stats.chi2.isf(share, freedom)) - own, 0)) for share in (tail, 1 - tail)
    )
    variance = max(squares / freedom - own, 0)
    mean = float(effects[:, 0].mean())
    reach = float(stats.t.isf(tail, freedom)) * math.sqrt(variance + of_mean + variance / number)
    return BetweenModels(Interval(math.sqrt(variance), low, high), Interval(mean, mean - reach, mean + reach))


def errors(effects: Floats, inflation: float) -> tuple[float, float]:
    """Variance of the mean over two or more models, and that of one model beyond what all share.

    Both come from patients or hospitals, and are larger by `inflation` than over the resamples. NaN where no
    two resamples are defined for all models.
    """
    number = len(effects)
    resampled = effects[:, 1:][:, ~np.isnan(effects[:, 1:]).any(axis=0)]
    if resampled.shape[1] < 2:
        return math.nan, math.nan
    covariance = np.cov(resampled) * inflation
    shared = (covariance.sum() - np.trace(covariance)) / (number * (number - 1))
    own = max(float(np.trace(covariance) / number - shared), 0.0)
    return float(covariance.sum()) / number**2, own
