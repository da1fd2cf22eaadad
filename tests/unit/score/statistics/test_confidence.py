"""Discrimination, calibration, and preference for places in the list."""

import random
from typing import Any

import numpy as np
import pytest
from made_verdicts import verdict
from scipy import stats

from cardiolens.score.claims.descriptions import calibration_rows, risk_rows
from cardiolens.score.run_results.model_replies import WITH_REPLIES
from cardiolens.score.statistics.bootstrap import FEWEST_OF_CLASS, resampling_weights
from cardiolens.score.statistics.confidence import (
    ConfidentAnswers,
    Curve,
    auroc,
    average_precision,
    confidence_curves,
    confidence_scores,
    of_options,
)
from cardiolens.score.statistics.item_scores import ItemScores, position_scores
from cardiolens.score.statistics.statistic import Settings
from cardiolens.storage.tables import from_rows


def test_auroc_is_the_rank_sum_with_ties_half() -> None:
    dice = np.random.default_rng(3)
    scores, positive = dice.integers(0, 6, 40) / 6, dice.random(40) < 0.4
    found = auroc(Curve.of(scores, positive, np.ones((1, 40)))).item()
    u = stats.mannwhitneyu(scores[positive], scores[~positive]).statistic
    assert found == pytest.approx(u / (positive.sum() * (~positive).sum()))


def test_average_precision_by_hand() -> None:
    """Ranks of the positive items: 1, 3, 4 of 5."""
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    positive = np.array([True, False, True, True, False])
    found = average_precision(Curve.of(scores, positive, np.ones((1, 5)))).item()
    assert found == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)


def curves(confidence: list[float], right: list[bool]) -> dict[str, float]:
    number = len(right)
    answers = ConfidentAnswers(
        np.array(confidence), np.array(right), np.arange(number), np.full(number, "ok")
    )
    found = confidence_curves(answers, np.ones((1, number)))
    return {name: float(statistic.values[0]) for name, statistic in found.items()}


def test_calibration_error_by_hand() -> None:
    found = curves([0.95, 0.95, 0.55, 0.55], [True, True, True, False])
    # bins .9-1: accuracy 1 against .95; .5-.6: .5 against .55
    assert found["calibration_error"] == pytest.approx(0.05)


def test_risk_falls_where_confidence_knows() -> None:
    found = curves([0.9, 0.8, 0.7, 0.6], [True, True, False, False])
    assert [found[f"risk.{share}"] for share in (20, 50, 70, 100)] == pytest.approx([0, 0, 1 / 3, 1 / 2])
    assert found["risk_area"] == pytest.approx((1 / 3 + 1 / 2) / 4)
    assert curves([0.5] * 4, [True, True, False, False])["risk_area"] == pytest.approx(0.5)


def test_one_answer_is_scaled_and_several_are_not() -> None:
    logs = {"A": np.log(0.1), "Z": np.log(0.3)}
    one = of_options(logs, ["B", "Z", "A"], several=False)
    assert one == pytest.approx({"A": 0.75, "B": 0.25, "Z": 0})
    several = of_options(logs, ["B", "Z", "A"], several=True)
    assert several == pytest.approx({"A": 0.3, "B": 0.1, "Z": 0})


def row(patient: int, gold: str, parsed: str, shown: str = "AB", **changes: Any) -> dict[str, Any]:
    """An answer with the options as displayed; `logs` are the probabilities of displayed letters."""
    logs = [(letter, np.log(share)) for letter, share in changes.pop("logs", {}).items()]
    displayed = {"option_keys": list(shown), "option_logprobs": logs or None}
    return verdict(f"p{patient:03d}", "L01", gold, parsed) | displayed | changes


def scored(rows: list[dict[str, Any]], measure: Any, resamples: int = 50) -> list[dict[str, Any]]:
    patients = sorted({row["patient_id"] for row in rows})
    return [
        *measure("arm", from_rows(rows, WITH_REPLIES), ItemScores.of(Settings(1, resamples, 1), patients))
    ]


def test_items_of_a_subtask_may_show_different_options() -> None:
    """The most probable option counts, also where the first item lacks it; before, it was left out."""
    rows = [
        row(patient, gold, gold, shown, logs={gold: 0.9, shown[0]: 0.1})
        for patient, (gold, shown) in enumerate([("B", "AB"), ("C", "ABC")] * 10)
    ]
    for order in (rows, rows[1:]):
        found = {entry["metric"]: entry["value"] for entry in scored(order, confidence_scores)}
        assert found["risk.100"] == 0
        assert "auroc" not in found


def test_confidence_scores_read_letters_as_displayed() -> None:
    """Half of the requests show B first; the engine's letters are those displayed."""
    rows = []
    for patient in range(20):
        gold, shown = "AB"[patient % 2], "AB" if patient % 4 < 2 else "BA"
        at = shown.index(gold)
        rows.append(row(patient, gold, gold, shown, logs={"AB"[at]: 0.9, "AB"[1 - at]: 0.1}))
    found = {entry["metric"]: entry for entry in scored(rows, confidence_scores)}
    assert found["auroc"]["value"] == found["auroc"]["high"] == 100
    assert 70 < found["auroc"]["low"] < 80, "of ten patients of each class"
    assert found["average_precision"]["value"] == 100
    assert found["calibration_error"]["value"] == pytest.approx(10)
    assert (found["auroc"]["n_items"], found["auroc"]["n_patients"]) == (20, 20)
    assert found["calibration.10.confidence"]["value"] == pytest.approx(90)
    assert found["calibration.10.accuracy"]["value"] == 100
    assert not any(name.startswith("calibration.9.") for name in found)
    assert found["risk.10"]["value"] == found["risk.100"]["low"] == 0 < found["risk.100"]["high"] < 20
    assert not scored([row(1, "A", "A")], confidence_scores), "without probabilities"


def test_each_option_of_several_is_told_apart() -> None:
    """B is named with probability 0.8 where it is right, else with 0.3; C by chance; nobody has A."""
    dice = np.random.default_rng(6)
    rows = []
    for patient in range(40):
        right = "B" if patient % 2 else "C"
        logs = {"A": dice.random(), "C": 0.8 if right == "B" else 0.3}
        rows.append(row(patient, right, "BC", "CAB", answer_type="multi", logs=logs))
    found = {entry["metric"]: entry for entry in scored(rows, confidence_scores)}
    assert found["auroc.B"]["value"] == found["average_precision.B"]["value"] == 100
    assert 80 < found["average_precision.B"]["low"] < 85
    assert found["auroc.C"]["low"] < 50 < found["auroc.C"]["high"]
    assert np.isnan(found["auroc.A"]["value"])
    assert "calibration_error" not in found


@pytest.mark.parametrize("positive", [3, FEWEST_OF_CLASS - 1, FEWEST_OF_CLASS])
def test_auroc_needs_ten_patients_of_the_rarer_class(positive: int) -> None:
    """A reader that gives the right answer the higher probability, but for one patient."""
    rows = []
    for patient in range(60):
        share = 0.45 if patient == positive else 0.9 if patient < positive else 0.1 + patient / 1000
        share -= 0.5 * (patient == 0)
        gold = "AB"[patient < positive]
        rows.append(row(patient, gold, gold, logs={"A": 1 - share, "B": share}))
    (found,) = [entry for entry in scored(rows, confidence_scores, 300) if entry["metric"] == "auroc"]
    assert found["value"] > 80
    assert (found["n_items"], found["n_positive"], found["n_rarer_class"]) == (60, positive, positive)
    assert np.isnan(found["low"]) == (positive < FEWEST_OF_CLASS)
    assert ("fewer than 10 patients of the rarer class" in found["method"]) == (positive < FEWEST_OF_CLASS)


@pytest.mark.parametrize("bias", [0.0, 0.5])
def test_a_planted_preference_for_the_first_place_is_found(bias: float) -> None:
    dice = random.Random(8)
    rows = []
    for patient in range(400):
        gold, shown = dice.choice("AB"), dice.choice(["AB", "BA"])
        rows.append(row(patient, gold, shown[0] if dice.random() < bias else dice.choice("AB"), shown))
    found = {entry["metric"]: entry for entry in scored(rows, position_scores, 200)}
    assert found["position_bias.1"]["low"] <= 100 * bias / 2 <= found["position_bias.1"]["high"]
    assert found["position_bias.1"]["value"] == pytest.approx(-found["position_bias.2"]["value"])
    assert (found["position_bias.1"]["low"] > 0) == (bias > 0)


def test_curves_of_several_subtasks_are_drawn_together() -> None:
    """Confidence 0.9 on L01, always right; 0.6 on P01, right in half."""
    rows = []
    for patient in range(30):
        for subtask, sure, parsed in (("L01", 0.9, "A"), ("P01", 0.6, "AB"[patient % 2])):
            names = {"qa_id": f"p{patient}:{subtask}", "subtask": subtask}
            rows.append(row(patient, parsed, "A", logs={"A": sure, "B": 1 - sure}, **names))
    scores = scored(rows, confidence_scores, 300)
    found = {entry["metric"]: entry for entry in scores if entry["scope"] == "tier:1"}
    assert found["calibration_error"]["value"] == pytest.approx((10 + 10) / 2)
    assert [found[f"risk.{share}"]["value"] for share in (10, 50, 100)] == pytest.approx([0, 0, 25])
    of_tier = [entry for entry in calibration_rows(scores) if entry["scope"] == "tier:1"]
    assert [(entry["from"], entry["to"], entry["n_items"]) for entry in of_tier] == [
        (60, 70, 30),
        (90, 100, 30),
    ]
    assert [entry["accuracy"] for entry in of_tier] == [50, 100]
    of_tier = [entry for entry in risk_rows(scores) if entry["scope"] == "tier:1"]
    assert [entry["coverage"] for entry in of_tier] == list(range(10, 101, 10))


def test_curves_do_not_depend_on_how_many_resamples_are_held_at_once() -> None:
    dice = np.random.default_rng(1)
    told = ConfidentAnswers(dice.random(60), dice.random(60) < 0.7, np.arange(60) // 2, np.full(60, "ok"))
    weights = resampling_weights(30, 600, 1)
    many = confidence_curves(told, weights)
    few = confidence_curves(told, weights[:1])
    assert all(many[name].values[0] == pytest.approx(few[name].values[0], nan_ok=True) for name in many)
    assert len(many["risk_area"].values) == 601
