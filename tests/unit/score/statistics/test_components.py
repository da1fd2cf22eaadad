"""Components of variance: what a mixed model finds of what was put in."""

from dataclasses import replace

import numpy as np
import pytest

from cardiolens.score.statistics.enough_data import FEWEST_FOR_CLAIM
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.items import Items
from cardiolens.score.statistics.variance_components import components

MODELS, BUDGETS, SUBTASKS = 5, ("8", "16"), 5


def arms() -> list[ArmFactors]:
    return [
        ArmFactors(f"m{model}-{budget}", f"m{model}", "clinical", budget, "standard")
        for model in range(MODELS)
        for budget in BUDGETS
    ]


def answers(patients: int, of_model: float, of_patient: float, seed: int = 1) -> dict[str, Items]:
    """Exact answers on the logit scale: models and patients differ, budgets do not."""
    dice = np.random.default_rng(seed)
    models, effects = np.linspace(-1, 1, MODELS) * of_model, dice.normal(0, of_patient, patients)
    rows = [
        (arm.arm_id, f"S{subtask}", patient, patient * SUBTASKS + subtask, models[int(arm.model[1:])])
        for arm in sorted(arms(), key=lambda arm: arm.arm_id)
        for subtask in range(SUBTASKS)
        for patient in range(patients)
    ]
    arm, subtask, patient, question, level = map(np.array, zip(*rows, strict=True))
    right = dice.random(len(rows)) < 1 / (1 + np.exp(-(level.astype(float) + effects[patient])))
    number, ones = len(rows), np.ones(len(rows), np.int64)
    items = Items(
        **{"arm": arm, "subtask": subtask, "sequence": subtask, "patient": patient, "question": question},
        hospital=np.full(number, -1),
        **{"answer_type": np.full(number, "single"), "parse_status": np.full(number, "ok")},
        **{"request": np.arange(number), "tier": ones, "options": 2 * ones, "gold": ones},
        **{"parsed": np.where(right, 1, 2), "judged": np.ones(number, bool)},
    )
    return {str(name): items.where(arm == name) for name in np.unique(arm)}


def test_what_differs_is_found_and_what_does_not_is_small() -> None:
    rows = {str(row["component"]): row for row in components(answers(40, 1.2, 1.0), arms(), seed=1)}
    assert list(rows) == ["patient", "subtask", "item", "model", "budget", "within an item"]
    value = {name: float(str(row["value"])) for name, row in rows.items() if "value" in row}
    assert value["model"] == pytest.approx(np.std(np.linspace(-1.2, 1.2, MODELS)), rel=0.35)
    assert value["patient"] == pytest.approx(1.0, rel=0.35)
    assert max(value["budget"], value["subtask"]) < 0.3 < min(value["model"], value["patient"])
    assert all(
        float(str(row["low"])) < value[name] < float(str(row["high"]))
        for name, row in rows.items()
        if name in value
    )
    assert sum(float(str(row["share"])) for row in rows.values()) == pytest.approx(100)


def test_it_repeats() -> None:
    few = answers(FEWEST_FOR_CLAIM, 1.0, 1.0)
    assert repr(components(few, arms(), seed=1)) == repr(components(few, arms(), seed=1))


def test_an_answer_that_two_arms_share_counts_once() -> None:
    shared = answers(FEWEST_FOR_CLAIM, 1.0, 1.0)
    alike = {
        arm: replace(items, request=items.question * MODELS + int(arm[1])) for arm, items in shared.items()
    }
    rows = components(alike, arms(), seed=1)
    assert rows[0]["n_items"] == FEWEST_FOR_CLAIM * SUBTASKS * MODELS
    assert "budget" not in {row["component"] for row in rows}  # every one of its answers is the other's


def test_few_patients_have_no_components() -> None:
    assert components(answers(FEWEST_FOR_CLAIM - 1, 1.0, 1.0), arms(), seed=1) == []
