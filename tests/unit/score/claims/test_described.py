"""Analyses that describe and do not test: ranges, subgroups, item difficulty, what a cohort can show."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made_verdicts import of_arm

from cardiolens.score.claims.descriptions import confusion_rows, item_difficulty, range_rows
from cardiolens.score.claims.parts_of_cohort import FEWEST, subgroup_rows
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.hypothesis_tests import detectable_difference, planned_error
from cardiolens.score.statistics.items import ArmAnswers
from cardiolens.score.statistics.pooled import number_of_questions, power_lines
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.storage.schemas import QUESTIONS, VERDICTS
from cardiolens.storage.tables import from_rows

SINGLE = ("C10", "L01", "P01")


def arm(name: str, model: str = "m", selector: str = "clinical", **changes: Any) -> ArmFactors:
    return ArmFactors(**({"arm_id": name, "model": model, "selector": selector} | DEFAULTS | changes))


DEFAULTS = {"budget": "16", "prompt": "standard"}


def verdict(arm_id: str, patient: int, subtask: str, right: bool) -> dict[str, Any]:
    return of_arm(arm_id, f"p{patient:03d}", subtask, "A", "A" if right else "B", answer_type="single")


def verdicts(shares: dict[str, float], patients: int = 40, seed: int = 1) -> pa.Table:
    """Arms that are right with a share each."""
    dice = np.random.default_rng(seed)
    rows = [
        verdict(name, patient, subtask, bool(dice.random() < share))
        for name, share in shares.items()
        for patient, subtask in itertools.product(range(patients), SINGLE)
    ]
    return from_rows(rows, VERDICTS)


def values(arms: dict[ArmFactors, float]) -> list[dict[str, Any]]:
    row = {"metric": "primary", "scope": "tier:1"}
    return [row | {"arm_id": one.arm_id, "value": value} for one, value in arms.items()]


def test_ranges_hold_all_else_and_average_over_seeds_between_selections() -> None:
    arms = {
        arm("a"): 60.0,
        arm("b", selector="random@1"): 50.0,
        arm("c", selector="random@2"): 54.0,
        arm("d", wording="1"): 63.0,
        arm("e", wording="2"): 59.0,
        arm("f", control="blind"): 10.0,
        arm("g", model="other"): 90.0,
    }
    rows = {(row["model"], row["factor"]): row for row in range_rows(values(arms), list(arms))}
    assert set(rows) == {("m", "protocol"), ("m", "seed"), ("m", "wording")}
    assert rows["m", "protocol"]["mean_range"] == pytest.approx(60 - 52)
    assert rows["m", "seed"]["max_range"] == pytest.approx(4)
    assert rows["m", "seed"]["levels"] == 2
    assert (rows["m", "wording"]["levels"], rows["m", "wording"]["max_range"]) == (3, pytest.approx(4))


def test_a_subgroup_scores_as_its_patients_alone_do() -> None:
    table = verdicts({"a": 0.6, "b": 0.4})
    inside = {f"p{patient:03d}" for patient in range(15)}
    few = {f"p{patient:03d}" for patient in range(15, 15 + FEWEST - 1)}
    models = {"m": {"clinical": ["a"]}, "n": {"clinical": ["b"]}}
    groups = {"vendor": {"one": inside, "two": few}}
    found = list(subgroup_rows(ArmAnswers.of(table), groups, models, Settings(1, 300, 1)))
    of_few = [row for row in found if row["subgroup"] == "two"]
    assert [(row.get("value"), row["method"]) for row in of_few] == [
        (None, "fewer than 5 patients: not given")
    ]
    rows = {row["arm_id"]: row for row in found if row["subgroup"] == "one"}
    alone = table.filter(pa.array([name in inside for name in table["patient_id"].to_pylist()]))
    expected = {
        row["arm_id"]: row
        for row in score(alone, [], Settings(1, 300, 1)).scores.to_pylist()
        if (row["metric"], row["scope"]) == ("primary", "tier:1")
    }
    for name, bare in (("headline:m", "a"), ("headline:n", "b")):
        assert rows[name]["n_patients"] == 15
        for end in ("value", "low", "high"):
            assert rows[name][end] == pytest.approx(expected[bare][end])


def test_numbers_of_a_tier_that_fewer_than_five_of_a_subgroup_have_are_not_given() -> None:
    table = verdicts({"a": 0.6}, patients=12)
    kept = [row for row in table.to_pylist() if row["patient_id"] < "p004"]
    others = [row | {"tier": 3, "subtask": "D01"} for row in table.to_pylist() if row["patient_id"] >= "p004"]
    groups = {"sex": {"female": set(table["patient_id"].to_pylist())}}
    mixed = from_rows(kept + others, VERDICTS)
    found = subgroup_rows(ArmAnswers.of(mixed), groups, {"m": {"c": ["a"]}}, Settings(1, 50, 1))
    by_tier = {row["scope"]: row for row in found}
    assert "value" not in by_tier["tier:1"]
    assert by_tier["tier:3"]["n_patients"] == 8


def test_difficulty_is_over_readers_and_hard_items_are_counted() -> None:
    """Item p000 of L01 is beyond everybody; C10 tells good readers from bad ones."""
    rows = []
    for reader, skill in (("r1", 10), ("r2", 20), ("r3", 30)):
        for patient in range(40):
            rows.append(verdict(reader, patient, "C10", patient < skill))
            rows.append(verdict(reader, patient, "L01", patient != 0))
    rows += [verdict("blind", patient, "L01", True) for patient in range(40)]
    rows += [verdict("truth", patient, "L01", True) for patient in range(40)]
    arms = [arm(name, model=name) for name in ("r1", "r2", "r3")]
    arms += [arm("blind", model="r1", control="blind"), arm("truth", model="oracle", simulated=True)]
    found = {row["scope"]: row for row in item_difficulty(ArmAnswers.of(from_rows(rows, VERDICTS)), arms)}
    assert found["subtask:C10"]["difficulty"] == pytest.approx(100 * 60 / 120)
    assert found["subtask:C10"]["never_right"] == 10
    assert found["subtask:L01"]["never_right"] == 1
    # those between the poorest and the best reader's reach; all other items are answered alike
    assert found["subtask:C10"]["n_discrimination"] == 20
    assert found["subtask:C10"]["discrimination"] > 0.8
    assert np.isnan(float(found["subtask:L01"]["discrimination"]))


def test_what_a_cohort_can_show_is_told_by_tier_before_anything_is_asked() -> None:
    asked = [
        {"qa_id": f"{patient}/{item}", "patient_id": f"p{patient}", "tier": tier}
        for patient in range(50)
        for item, tier in enumerate((1, 1, 1, 1, 3))
    ]
    questions = from_rows(asked, QUESTIONS)
    two = [arm("a"), arm("b", prompt="reasoning")]
    lines = power_lines(questions, two)
    alone, adjusted = (detectable_difference(planned_error(50, 4), number) for number in (1, 2 + 6 + 2))
    assert lines[0] == (
        f"tier 1: 50 patients, 200 items detect a difference of {alone:.1f} points with 80 % power, "
        f"a difference of {adjusted:.1f} points among the 10 questions of this run"
    )
    assert lines[1].startswith("tier 3: 50 patients, 50 items")
    assert "among the 2 questions" in power_lines(questions, two[:1])[0]  # collapse, on both tiers
    assert (
        number_of_questions([arm("a", simulated=True), arm("b", simulated=True, budget="8")], [1, 2, 3]) == 0
    )


def test_a_cohort_that_can_show_no_difference_says_so() -> None:
    """Two shares differ by at most 100 points."""
    asked = [{"qa_id": str(at), "patient_id": f"p{at}", "tier": 1} for at in range(4)]
    two = [arm("a"), arm("b", prompt="reasoning")]
    words = [power_lines(from_rows(asked[:n], QUESTIONS), two)[0] for n in (1, 4)]
    assert words[0] == "tier 1: 1 patient, 1 item detect no difference with 80 % power"
    assert words[1].startswith(
        "tier 1: 4 patients, 4 items detect a difference of 82.9 points with 80 % power"
    )
    assert ", no difference among the " in words[1]


def test_without_an_item_there_is_no_difficulty() -> None:
    assert item_difficulty(ArmAnswers.of(from_rows([], VERDICTS)), []) == []


def test_two_studies_of_a_patient_are_two_joint_diagnoses() -> None:
    """Before, each diagnosis of the one was joined with each of the other."""
    rows = [
        of_arm("a", "p1", subtask, gold, parsed, study_id=study, qa_id=f"{study}:{subtask}")
        for study, told in (("s1", ("CC", "AB")), ("s2", ("CA", "BB")))
        for subtask, (gold, parsed) in zip(("D01", "D02"), told, strict=True)
    ]
    cells = confusion_rows(Verdicts.of(from_rows(rows, VERDICTS)))
    joint = [row for row in cells if row["subtask"] == "D01+D02"]
    assert {(row["gold"], row["predicted"]): row["n"] for row in joint} == {("CA", "CB"): 1, ("CB", "A"): 1}
