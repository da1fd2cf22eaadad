"""Change of accuracy from tier to tier over models, with patients as random as the models (protocol 17.7)."""

import math
from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np

from cardiolens.score.statistics.between_models import errors
from cardiolens.score.statistics.corrected import CORRECTED, EXACT
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.pooled_effects import joined
from cardiolens.score.statistics.rows import TIERS, as_row
from cardiolens.score.statistics.statistic import Basis, Key, Statistic

PREFIX = "models:"  # of both sides in the table of scores: a tier
CHANGE_P = "change_p"
_FEWEST_MODELS = 2


def tier_change_rows(
    means: Mapping[str, Mapping[Key, Statistic]], method: str
) -> Iterator[dict[str, object]]:
    """Rows of the mean change over models between two tiers, and its p, from the headlines of each model.

    Models that share hard patients change alike without any difference between the tiers, so the variance is
    that of the mean over resamples of patients plus that of the models' true changes; their degrees of
    freedom are joined by Satterthwaite (1946).
    """
    for earlier, later in combinations(TIERS, 2):
        for metric in (CORRECTED, EXACT):
            sides = [
                (of_model[metric, earlier], of_model[metric, later])
                for of_model in means.values()
                if {(metric, earlier), (metric, later)} <= of_model.keys()
            ]
            changes = [(after, after.values - before.values) for before, after in sides]
            changes = [change for change in changes if not math.isnan(change[1][0])]
            if len(changes) < _FEWEST_MODELS:
                continue
            basis = joined([after.basis for after, _ in changes])
            values = np.stack([change for _, change in changes])
            names = {"arm_id": f"{PREFIX}{later}", "versus_arm_id": f"{PREFIX}{earlier}"}
            note = f"mean over {len(changes)} models, patients and models random; {method}"
            row = as_row((metric, later), Statistic(values.mean(axis=0), basis, of_pairs=True), note)
            error, freedom = (math.nan, math.nan) if basis.without_interval else _error(values, basis)
            mean = float(values[:, 0].mean())
            reach, p = _t(mean, error, freedom)
            ends = {"value": 100 * mean, "low": 100 * (mean - reach), "high": 100 * (mean + reach)}
            yield names | row | ends | {"method": note}
            test = {"metric": f"{metric}.{CHANGE_P}", "value": p, "low": np.nan, "high": np.nan}
            yield names | row | test | {"method": note}


def _error(values: Floats, basis: Basis) -> tuple[float, float]:
    """The standard error of the mean of (model, 1 + resamples), and its degrees of freedom."""
    number = len(values)
    of_patients, own = errors(values, basis.inflation)
    of_models = max(float(values[:, 0].var(ddof=1)) - own, 0.0) / number
    total = of_patients + of_models
    if not total > 0:
        return math.nan, math.nan
    parts = of_patients**2 / max(int(basis.units) - 1, 1) + of_models**2 / (number - 1)
    return math.sqrt(total), total**2 / parts


def _t(mean: float, error: float, freedom: float) -> tuple[float, float]:
    """Half the width of the 95 % interval, and the two-sided p."""
    from scipy import stats

    if math.isnan(error):
        return math.nan, math.nan
    return error * float(stats.t.isf(0.025, freedom)), 2 * float(stats.t.sf(abs(mean) / error, freedom))
