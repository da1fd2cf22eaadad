"""Paired differences between arms."""

import math
import random
from typing import Any

import numpy as np
import pytest

from cardiolens.base.errors import InputError
from cardiolens.score.statistics.scores import score
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.tables import from_rows

TYPES = {"C10": ("ordinal", 4), "L01": ("single", 2), "L02": ("multi", 5)}


def verdict(arm: str, patient: int, subtask: str, gold: str, parsed: str, **changes: Any) -> dict[str, Any]:
    answer_type, size = TYPES[subtask]
    return {
        "arm_id": arm,
        "qa_id": f"p{patient:02d}:{subtask}",
        "channel": "answer",
        "patient_id": f"p{patient:02d}",
        "tier": 1,
        "sequence": "lge" if subtask.startswith("L") else "cine",
        "subtask": subtask,
        "answer_type": answer_type,
        "request_key": f"{arm}/{patient}/{subtask}",
        "status": "judged",
        "parse_status": "ok",
        "parsed": list(parsed),
        "gold": list(gold),
        "counts": [("options", float(size))],
    } | changes


def cohort(patients: int = 30, seed: int = 4) -> list[dict[str, Any]]:
    """Arm `good` is right more often than arm `poor`."""
    dice = random.Random(seed)
    rows = []
    for patient in range(patients):
        for subtask, (_, size) in TYPES.items():
            gold = dice.choice("ABCDE"[:size])
            for arm, share in (("good", 0.9), ("poor", 0.4)):
                parsed = gold if dice.random() < share else dice.choice("ABCDE"[:size])
                rows.append(verdict(arm, patient, subtask, gold, parsed))
    return rows


Families = dict[str, list[tuple[str, str]]]
ONE_PAIR: Families = {"selector": [("good", "poor")]}


def scores_of(
    rows: list[dict[str, Any]], families: Families = ONE_PAIR
) -> dict[tuple[str, str, str | None], dict[str, Any]]:
    """Rows of arm `good` by metric, scope and the arm it is compared with."""
    scores = score(from_rows(rows, VERDICTS), 1, 200, 1, families).to_pylist()
    chosen = [row for row in scores if row["arm_id"] == "good"]
    return {(row["metric"], row["scope"], row["versus_arm_id"]): row for row in chosen}


def test_a_difference_is_of_the_two_values_with_an_interval_of_its_own() -> None:
    scores = score(from_rows(cohort(), VERDICTS), 1, 200, 1, {"selector": [("good", "poor")]}).to_pylist()
    values = {
        row["arm_id"]: row["value"]
        for row in scores
        if (row["metric"], row["scope"], row["versus_arm_id"]) == ("primary", "tier:1", None)
    }
    row = scores_of(cohort())["primary", "tier:1", "poor"]
    assert row["value"] == pytest.approx(values["good"] - values["poor"])
    assert row["low"] < row["value"] < row["high"]
    assert (row["n_items"], row["n_patients"], row["n_same_request"]) == (90, 30, 0)


def test_items_that_asked_the_same_are_counted_and_differ_by_zero() -> None:
    rows = cohort()
    for row in rows:
        row |= {"request_key": row["qa_id"], "parsed": row["gold"]}
    found = scores_of(rows)
    assert found["primary", "tier:1", "poor"]["n_same_request"] == 90
    for metric in ("primary", "precision", "mean_cardinality"):
        row = found[metric, "tier:1", "poor"]
        assert row["value"] == 0
        if metric == "mean_cardinality":
            assert math.isnan(row["low"]), "not a share, and no resample differs"
        else:
            assert row["low"] == -row["high"] < 0
    assert found["primary.swap_p", "tier:1", "poor"]["value"] == 1


def test_only_items_judged_in_both_arms_are_compared() -> None:
    rows = cohort()
    lost = {f"p{patient:02d}" for patient in range(10)}
    for row in rows:
        if row["arm_id"] == "poor" and row["patient_id"] in lost:
            row |= {"status": "engine_error"}
    kept = [row for row in rows if row["patient_id"] not in lost]
    partial, whole = scores_of(rows), scores_of(kept)
    assert partial["primary", "tier:1", "poor"]["value"] == pytest.approx(
        whole["primary", "tier:1", "poor"]["value"]
    )
    assert partial["primary", "tier:1", "poor"]["n_items"] == 60
    assert partial["primary", "tier:1", None]["n_items"] == 90


def test_tests_stand_beside_the_difference() -> None:
    found = scores_of(cohort(60))
    assert found["primary.swap_p", "tier:1", "poor"]["value"] < 0.01
    assert found["accuracy.mcnemar_p", "subtask:L01", "poor"]["value"] < 0.05
    assert ("accuracy.mcnemar_p", "subtask:L02", "poor") not in found
    assert "swapped between arms" in found["primary.swap_p", "tier:1", "poor"]["method"]


def test_most_subtasks_changing_one_way_is_tested_by_signed_ranks() -> None:
    rows = cohort(40)
    subtasks = sorted({row["subtask"] for row in rows})
    for row in rows:
        right = row["arm_id"] == "good" or int(row["patient_id"][1:]) >= 4 * (
            1 + subtasks.index(row["subtask"])
        )
        row["parsed"] = row["gold"] if right else ["E"]
    found = scores_of(rows)["primary.wilcoxon_p", "tier:1", "poor"]
    changes = [scores_of(rows)["primary", f"subtask:{subtask}", "poor"]["value"] for subtask in subtasks]
    assert min(changes) > 0
    assert found["value"] == pytest.approx(2 / 2 ** len(subtasks))
    assert found["method"] == f"Wilcoxon signed rank over {len(subtasks)} subtasks, exact"


def test_pairs_of_arms_of_models_have_a_false_discovery_rate() -> None:
    rows = cohort(20)
    rows += [row | {"arm_id": "copy"} for row in rows if row["arm_id"] == "good"]
    found = scores_of(rows, {"selector": [("good", "poor"), ("good", "copy")]})
    plain = found["primary.swap_p", "tier:1", "poor"]["value"]
    adjusted = found["primary.fdr_p", "tier:1", "poor"]
    assert adjusted["value"] == pytest.approx(2 * plain)
    assert adjusted["method"].startswith("false discovery rate over 2 comparisons of what the run varied;")
    assert found["primary.fdr_p", "tier:1", "copy"]["value"] == 1
    assert ("primary.holm_p", "tier:1", "poor") not in found
    alone = scores_of(rows)["primary.fdr_p", "tier:1", "poor"]
    assert alone["value"] == pytest.approx(plain)


def test_equivalence_is_said_from_the_90_percent_interval() -> None:
    found = scores_of(cohort(60))
    row = found["primary.equivalence", "tier:1", "poor"]
    assert row["method"].startswith("beyond 2 points, 90 % interval")
    wide = found["primary", "tier:1", "poor"]
    assert wide["low"] < row["low"] < row["high"] < wide["high"]


def test_an_arm_that_has_nothing_is_named() -> None:
    with pytest.raises(InputError, match=r"'nobody' has no judged item; compare two of good, poor"):
        scores_of(cohort(3), {"selector": [("good", "nobody")]})


def test_differences_repeat_in_any_order_of_rows() -> None:
    rows = cohort(12)
    once = scores_of(rows)
    random.Random(1).shuffle(rows)
    assert repr(scores_of(rows)) == repr(once)
    assert not np.isnan(once["primary", "tier:1", "poor"]["low"])
