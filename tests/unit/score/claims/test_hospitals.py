"""Few hospitals speak of themselves alone, five or more are a level of chance."""

from typing import Any

import numpy as np
import pytest

from bench.claims import arms_of, verdicts
from cardiolens.score.claims.descriptions import hospital_rows
from cardiolens.score.claims.parts_of_cohort import full_minus_part, subgroup_rows
from cardiolens.score.statistics.bootstrap import (
    Basis,
    over_hospitals,
    resampling_weights,
    variance_inflation,
)
from cardiolens.score.statistics.items import ArmAnswers, hospital_codes
from cardiolens.score.statistics.scores import compute_scores
from cardiolens.score.statistics.statistic import Resampling, Settings, Statistic
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.tables import from_rows


def of_sites(number: int, of: int = 30) -> list[str]:
    sites = {f"H{at}": {f"p{10 * at + one}" for one in range(10)} for at in range(number)}
    return [str(row["sentence"]) for row in hospital_rows({"site": sites, "vendor": {"x": {"p1"}}}, of)]


@pytest.mark.parametrize("number", [0, 1])
def test_one_hospital_gives_no_sentence(number: int) -> None:
    assert of_sites(number) == []
    assert hospital_rows({}, 30) == []


@pytest.mark.parametrize(
    ("number", "patients", "begins", "words"),
    [
        (2, 20, "two hospitals: ", "scores, intervals and claims speak of these hospitals alone"),
        (4, 40, "four hospitals: ", "scores, intervals and claims speak of these hospitals alone"),
        (3, 45, "three hospitals (known for 30 of 45 patients): ", "claims speak of these hospitals alone"),
        (5, 50, "5 hospitals: ", "take hospitals as random, with the t distribution of 5 hospitals"),
        (6, 70, "6 hospitals (known for 60 of 70 patients): ", "as if hospitals did not differ"),
    ],
)
def test_a_sentence_says_of_which_hospitals_scores_speak(
    number: int, patients: int, begins: str, words: str
) -> None:
    (sentence,) = of_sites(number, patients)
    assert sentence.startswith(f"The patients come from {begins}")
    assert words in sentence
    assert "H1" not in sentence


def test_codes_are_for_cohorts_of_which_every_hospital_is_known() -> None:
    patients = [f"p{at}" for at in range(10)]
    sites = {patient: f"H{at % 5}" for at, patient in enumerate(patients)}
    codes = hospital_codes(patients, sites)
    assert codes is not None
    assert codes.tolist() == [0, 1, 2, 3, 4] * 2
    assert hospital_codes([*patients, "p10"], sites) is None
    assert hospital_codes(patients, {patient: "H0" for patient in patients}) is None


@pytest.mark.parametrize("sizes", [(40,) * 5, (80, 50, 40, 20, 10), (100, 40, 20, 20, 10, 10)])
def test_intervals_over_five_hospitals_cover(sizes: tuple[int, ...]) -> None:
    """Their effects differ by an SD of 3 points; resampled as patients they covered 72 to 79 %."""
    hospital = np.repeat(np.arange(len(sizes)), sizes)
    weights = resampling_weights(len(hospital), 300, 1, hospital)
    covered = 0
    for seed in range(300):
        dice = np.random.default_rng([17, seed])
        change = dice.normal(2, 3, len(sizes))[hospital] + dice.normal(0, 15, len(hospital))
        interval = over_hospitals(
            weights @ change / weights.sum(axis=1), 0.95, len(sizes), variance_inflation(np.array(sizes))
        )
        covered += interval.low <= 2 <= interval.high
    assert covered >= 0.93 * 300


@pytest.mark.parametrize("value", [0.9, 0.1])
def test_a_share_is_between_0_and_100_percent(value: float) -> None:
    """The items of four hospitals are all right, or all wrong, and those of the fifth by half."""
    hospital = np.repeat(np.arange(5), 80)
    shares = np.where(hospital == 4, 0.5, round(value))
    weights = resampling_weights(400, 300, 1, hospital)
    basis = Basis(400, 400, 0, 0, n_hospitals=5, hospital_inflation=variance_inflation(np.full(5, 80)))
    interval = Statistic(weights @ shares / weights.sum(axis=1), basis).interval("accuracy")
    assert interval.value == pytest.approx(100 * value)
    assert (interval.low, interval.high)[value > 0.5] == 100 * round(value)


def scored(number: int) -> tuple[dict[str, Any], dict[tuple[Any, ...], dict[str, Any]]]:
    """Scores of arms on tier 1, and comparisons by both sides, model and tier."""
    arms = arms_of(("clinical",), ("16",), ("standard", "reasoning"), ("a", "b", "c"))
    rows = from_rows(verdicts(arms, 60, np.random.default_rng([3, 1]), better=0.3), VERDICTS)
    patients = sorted(set(rows["patient_id"].to_pylist()))
    sites = {patient: f"H{at % number}" for at, patient in enumerate(patients)} if number else {}
    results = compute_scores(ArmAnswers.of(rows, sites), arms, Settings(1, 200, 1, swaps=200))
    scores, comparisons = (table.to_pylist() for table in results)
    names = ("level", "versus", "model", "arm_id", "metric", "tier")
    by_arm = {row["arm_id"]: row for row in scores if (row["metric"], row["scope"]) == ("primary", "tier:1")}
    return by_arm, {tuple(row[name] for name in names): row for row in comparisons}


def test_every_interval_and_test_is_over_hospitals() -> None:
    (of_hospitals, differences), (of_patients, of_pairs) = scored(6), scored(0)
    arm = "a-clinical-16-standard"
    assert "6 hospitals; t interval, bootstrap of hospitals" in of_hospitals[arm]["method"]
    assert "hospitals" not in of_patients[arm]["method"]
    assert of_hospitals[arm]["value"] == of_patients[arm]["value"]
    assert differences["reasoning", "standard", None, None, "primary", 1]["p"] > 0
    pairs = [key for key in of_pairs if key[3] is not None and key[4:] == ("primary", 1)]
    assert len(pairs) == 9
    assert all(differences[pair]["p"] >= of_pairs[pair]["p"] for pair in pairs)
    assert any(differences[pair]["p"] > of_pairs[pair]["p"] for pair in pairs)


def test_a_score_rests_on_the_hospitals_of_its_own_patients() -> None:
    arms = arms_of(("clinical",), ("16",), ("standard",), ("a",))
    answers = ArmAnswers.of(from_rows(verdicts(arms, 60, np.random.default_rng(1)), VERDICTS))
    hospitals = np.arange(60) % 6
    items = answers.judged(arms[0].arm_id).items
    sampling = Resampling.of(Settings(1, 5, 1), 60, hospitals)
    assert sampling.basis(items).n_hospitals == 6
    assert sampling.basis(items.where(hospitals[items.patient] < 2)).n_hospitals == 2


def test_parts_and_subgroups_stay_over_patients() -> None:
    """Before, patients were resampled, and the spread was taken for that of hospitals."""
    arms = arms_of(("clinical",), ("16",), ("standard",), ("a",))
    rows = from_rows(verdicts(arms, 60, np.random.default_rng([3, 1])), VERDICTS)
    patients = sorted(set(rows["patient_id"].to_pylist()))
    sites = {patient: f"H{at % 6}" for at, patient in enumerate(patients)}
    by_site = {name: [patient for patient in patients if sites[patient] == name] for name in ("H0", "H1")}
    models, settings = {"a": {"clinical": [arms[0].arm_id]}}, Settings(1, 200, 1)
    found = []
    for answers in (ArmAnswers.of(rows), ArmAnswers.of(rows, sites)):
        subgroups = subgroup_rows(answers, {"site": by_site}, models, settings)
        found.append([*subgroups, *full_minus_part(answers, "part", patients[:30], models, settings)])
    assert len(found[0]) == 6
    assert found[0] == found[1]
    assert not any("hospitals" in row["method"] for row in found[1])
