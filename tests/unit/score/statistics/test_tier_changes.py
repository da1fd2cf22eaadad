"""Changes between tiers over models that share their patients."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cardiolens.score.statistics.arm_statistics import CORRECTED, EXACT
from cardiolens.score.statistics.bootstrap import Basis, resampling_weights
from cardiolens.score.statistics.comparisons import adjust, decided
from cardiolens.score.statistics.pooled import tier_change_rows
from cardiolens.score.statistics.statistic import Statistic

PATIENTS, MODELS = 60, 24
WEIGHTS = resampling_weights(PATIENTS, 300, 1)


def rows_of(change: float, seed: int, models: int = MODELS) -> dict[str, dict[str, Any]]:
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
    rows = tier_change_rows(means, "bootstrap")
    adjust(rows)
    return {str(row["metric"]): row for row in rows}


def test_models_that_share_hard_patients_do_not_decline() -> None:
    runs = [rows_of(0.0, seed) for seed in range(300)]
    false = np.mean([run[CORRECTED]["p"] <= 0.05 for run in runs])
    assert false <= 0.08, "of 300 tests at 5 %, more than 24 reject with a chance of 1 %"
    covers = np.mean([run[CORRECTED]["low"] <= 0 <= run[CORRECTED]["high"] for run in runs])
    assert covers >= 0.92


def test_a_decline_is_found() -> None:
    row = rows_of(-0.2, 1)[CORRECTED]
    assert (row["factor"], row["level"], row["versus"]) == ("tier", "tier:3", "tier:1")
    assert row["difference"] == pytest.approx(-20, abs=8)
    assert (row["n_models"], row["family_size"]) == (MODELS, 1)
    assert row["p"] < 0.01
    assert str(row["method"]).startswith("mean over 24 models, patients and models random; ")


def test_few_patients_have_a_change_and_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.PATIENTS", 7)
    monkeypatch.setattr(f"{__name__}.WEIGHTS", resampling_weights(7, 50, 1))
    run = rows_of(-0.2, 1)
    assert not np.isnan(run[CORRECTED]["difference"])
    assert np.isnan([run[CORRECTED]["low"], run[CORRECTED]["high"]]).all()
    assert run[CORRECTED]["p_adjusted"] == 1


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


@pytest.mark.parametrize(("exact", "decision"), [(-0.1, "lower"), (0.1, "open")])
def test_a_change_is_claimed_only_where_exact_answers_change_the_same_way(
    exact: float, decision: str
) -> None:
    """Where only the guessing is easier, corrected accuracy falls and exact answers rise."""
    means = {}
    for model in range(8):
        dice = np.random.default_rng(model)
        answers = dice.normal(0.5, 0.1, (2, PATIENTS))
        changes = {CORRECTED: -0.2, EXACT: exact}
        means[f"m{model}"] = {
            (metric, tier): Statistic(
                WEIGHTS @ (values + (tier == "tier:3") * change) / PATIENTS, Basis(PATIENTS, PATIENTS, 0, 0)
            )
            for metric, change in changes.items()
            for tier, values in zip(("tier:1", "tier:3"), answers, strict=True)
        }
    rows = tier_change_rows(means, "bootstrap")
    adjust(rows)
    (row,) = [row for row in rows if row["metric"] == CORRECTED]
    assert decided(row)["decision"] == decision
