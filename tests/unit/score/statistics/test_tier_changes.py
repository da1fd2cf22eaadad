"""Changes between tiers over models that share their patients (protocol 17.7)."""

from dataclasses import replace

import numpy as np
import pytest

from cardiolens.score.statistics.bootstrap import resampling_weights
from cardiolens.score.statistics.corrected import CORRECTED, EXACT
from cardiolens.score.statistics.statistic import Basis, Statistic
from cardiolens.score.statistics.tier_changes import CHANGE_P, tier_change_rows

PATIENTS, MODELS = 60, 24
WEIGHTS = resampling_weights(PATIENTS, 300, 1)


def rows_of(change: float, seed: int, models: int = MODELS) -> dict[str, dict[str, object]]:
    """Rows of models whose answers share the hard patients of each tier, by metric."""
    dice = np.random.default_rng([41, seed])
    hard = dice.normal(0.6, 0.2, (2, PATIENTS))
    means = {}
    for model in range(models):
        own = dice.normal(0, 0.05) + dice.normal(0, 0.03, 2)
        answers = hard + own[:, None] + dice.normal(0, 0.2, (2, PATIENTS)) + [[0.0], [change]]
        tiers = dict(zip(("tier:1", "tier:3"), answers, strict=True))
        means[f"m{model}"] = {
            (metric, tier): Statistic(WEIGHTS @ values / PATIENTS, Basis(PATIENTS, PATIENTS, 0, 0))
            for metric in (CORRECTED, EXACT)
            for tier, values in tiers.items()
        }
    return {str(row["metric"]): row for row in tier_change_rows(means, "bootstrap")}


def p_of(row: dict[str, object]) -> float:
    return float(str(row["value"]))


def test_models_that_share_hard_patients_do_not_decline() -> None:
    runs = [rows_of(0.0, seed) for seed in range(300)]
    false = np.mean([p_of(run[f"{CORRECTED}.{CHANGE_P}"]) <= 0.05 for run in runs])
    assert false <= 0.08, "of 300 tests at 5 %, more than 24 reject with a chance of 1 %"
    covers = np.mean([run[CORRECTED]["low"] <= 0 <= run[CORRECTED]["high"] for run in runs])
    assert covers >= 0.92


def test_a_decline_is_found() -> None:
    row = rows_of(-0.2, 1)[CORRECTED]
    assert (row["arm_id"], row["versus_arm_id"], row["scope"]) == ("models:tier:3", "models:tier:1", "tier:3")
    assert row["value"] == pytest.approx(-20, abs=8)
    assert p_of(rows_of(-0.2, 1)[f"{CORRECTED}.{CHANGE_P}"]) < 0.01
    assert str(row["method"]).startswith("mean over 24 models, patients and models random; ")


def test_few_patients_have_a_change_and_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.PATIENTS", 7)
    monkeypatch.setattr(f"{__name__}.WEIGHTS", resampling_weights(7, 50, 1))
    run = rows_of(-0.2, 1)
    assert not np.isnan(p_of(run[CORRECTED]))
    assert np.isnan(
        [run[CORRECTED]["low"], run[CORRECTED]["high"], p_of(run[f"{CORRECTED}.{CHANGE_P}"])]
    ).all()


def test_one_model_has_no_change_over_models() -> None:
    assert rows_of(-0.2, 1, models=1) == {}


def test_a_change_over_hospitals_is_widened_by_their_sizes() -> None:
    def width(basis: Basis) -> float:
        dice = np.random.default_rng(17)
        means = {
            f"m{model}": {
                (CORRECTED, tier): Statistic(dice.normal(0.5, 0.05, 200), basis)
                for tier in ("tier:1", "tier:3")
            }
            for model in range(3)
        }
        (row,) = [row for row in tier_change_rows(means, "bootstrap") if row["metric"] == CORRECTED]
        return float(str(row["high"])) - float(str(row["low"]))

    equal = Basis(60, 60, 0, 0, n_hospitals=6, hospital_inflation=6 / 5)
    assert width(replace(equal, hospital_inflation=2.4)) > 1.2 * width(equal)
