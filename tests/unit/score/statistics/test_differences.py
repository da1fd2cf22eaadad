"""Paired differences between arms."""

import math
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from made_verdicts import KINDS, of_arm

from cardiolens.score.statistics.comparisons import reversed_row
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.tables import from_rows


def cohort(patients: int = 30, seed: int = 4) -> list[dict[str, Any]]:
    """Arm `good` is right more often than arm `poor`."""
    dice = random.Random(seed)
    rows = []
    for patient in range(patients):
        for subtask in ("C10", "L01", "L02"):
            size = KINDS[subtask][1]
            gold = dice.choice("ABCDE"[:size])
            for arm, share in (("good", 0.9), ("poor", 0.4)):
                parsed = gold if dice.random() < share else dice.choice("ABCDE"[:size])
                rows.append(of_arm(arm, f"p{patient:02d}", subtask, gold, parsed, parse_status="ok"))
    return rows


ARMS = [ArmFactors(arm, "model", "clinical", "8", arm) for arm in ("good", "poor")]


def tables_of(rows: list[dict[str, Any]], arms: Sequence[ArmFactors] = ARMS) -> list[pa.Table]:
    """Scores and comparisons of rows."""
    return list(score(from_rows(rows, VERDICTS), arms, Settings(1, 200, 1)))


def compared(rows: list[dict[str, Any]], arms: Sequence[ArmFactors] = ARMS) -> dict[tuple[str, str], Any]:
    """Comparisons on tier 1 of the arms `good` and another, by metric and the other, seen from `good`."""
    found = tables_of(rows, arms)[1].to_pylist()
    seen = [row if row["arm_id"] == "good" else reversed_row(row) for row in found if row["arm_id"]]
    return {(row["metric"], row["versus_arm_id"]): row for row in seen if row["arm_id"] == "good"}


def test_a_difference_is_of_the_two_values_with_an_interval_of_its_own() -> None:
    scores = tables_of(cohort())[0].to_pylist()
    values = {r["arm_id"]: r["value"] for r in scores if (r["metric"], r["scope"]) == ("primary", "tier:1")}
    row = compared(cohort())["primary", "poor"]
    assert row["difference"] == pytest.approx(values["good"] - values["poor"])
    assert row["low"] < row["low_90"] < row["difference"] < row["high_90"] < row["high"]
    assert (row["n_items"], row["n_patients"], row["n_same_request"]) == (90, 30, 0)


def test_items_that_asked_the_same_are_counted_and_differ_by_zero() -> None:
    rows = cohort()
    for row in rows:
        row |= {"request_key": row["qa_id"], "parsed": row["gold"]}
    found = compared(rows)
    assert (found["primary", "poor"]["n_same_request"], found["primary", "poor"]["p"]) == (90, 1)
    for metric in ("primary", "precision", "mean_cardinality"):
        row = found[metric, "poor"]
        assert row["difference"] == 0
        assert math.isnan(row["low"]) if metric == "mean_cardinality" else row["low"] == -row["high"] < 0


def test_only_items_judged_in_both_arms_are_compared() -> None:
    rows = cohort()
    lost = {f"p{patient:02d}" for patient in range(10)}
    for row in rows:
        if row["arm_id"] == "poor" and row["patient_id"] in lost:
            row |= {"status": "engine_error"}
    kept = [row for row in rows if row["patient_id"] not in lost]
    partial, whole = (compared(given)["primary", "poor"] for given in (rows, kept))
    assert partial["difference"] == pytest.approx(whole["difference"])
    assert (partial["n_items"], partial["n_dropped"]) == (60, 30)


def test_limits_of_models_weigh_arms_as_their_scores_do() -> None:
    """A selection with two seeds counts as much as one without; before, each of its arms did."""
    selectors = "clinical", "random@1", "random@2"
    arms = [ArmFactors(f"{m}-{name}", m, name, "16", "standard") for m in "ab" for name in selectors]
    patients = [f"p{patient:02d}" for patient in range(30)]
    rows = [
        of_arm(arm.arm_id, name, "L01", "A", "AB"[int(name[1:]) % 2]) for arm in arms for name in patients
    ]
    for row in rows:
        if row["arm_id"] == "b-clinical" and row["patient_id"] < "p10":
            row |= {"status": "engine_error"}
    compared = tables_of(rows, arms)[1].to_pylist()
    (found,) = (row for row in compared if row["factor"] == "model" and row["arm_id"] is None)
    assert found["high_bound"] - found["low_bound"] == pytest.approx(100 * 1 / 2 * 10 / 30)
