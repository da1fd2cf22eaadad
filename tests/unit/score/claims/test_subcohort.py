"""A full cohort beside a part of it, and the groups that manifests name."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made_verdicts import verdict
from small_cohort import make_cohort as make_phantoms
from small_cohort import volume_row

from cardiolens.score.claims.parts_of_cohort import full_minus_part, gold_shift, groups_of, separate_weights
from cardiolens.score.claims.sentences import sentence
from cardiolens.score.statistics.items import ArmAnswers
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Row, Settings
from cardiolens.storage.schemas import VERDICTS, VOLUMES
from cardiolens.storage.tables import from_rows, write_part
from cardiolens.study.cohort import Cohort, read_cohort, write_cohort


def cohort(patients: int = 60) -> pa.Table:
    """The first half of the patients is easy."""
    dice = random.Random(2)
    rows: list[dict[str, Any]] = []
    for patient in range(patients):
        gold = "A" if patient < patients / 2 else dice.choice("AB")
        parsed = gold if dice.random() < (0.75 if patient < patients / 2 else 0.4) else "B"
        rows.append(verdict(f"p{patient:02d}", "L01", gold, parsed))
    return from_rows(rows, VERDICTS)


EASY = [f"p{patient:02d}" for patient in range(30)]
ARMS = {"m": {"clinical": ["arm"]}}


def share(verdicts: pa.Table) -> float:
    (row,) = [
        row
        for row in score(verdicts, [], Settings(1, 10, 1)).scores.to_pylist()
        if (row["metric"], row["scope"]) == ("primary", "tier:1")
    ]
    return float(row["value"]) / 100


def test_the_difference_is_of_full_and_part() -> None:
    verdicts = cohort()
    (found,) = full_minus_part(ArmAnswers.of(verdicts), "easy", EASY, ARMS, Settings(1, 1000, 1))
    full, easy = share(verdicts), share(verdicts.slice(0, 30))
    assert found["difference"] == pytest.approx(100 * (full - easy))
    # the full cohort is half part, half remainder: half the difference of two independent shares
    hard = 2 * full - easy
    error = 0.5 * np.sqrt((easy * (1 - easy) + hard * (1 - hard)) / 30)
    assert found["high"] - found["low"] == pytest.approx(2 * 1.96 * 100 * error, rel=0.15)
    assert "full cohort minus 30 patients, on the subtasks and diagnoses of both" in found["method"]
    assert found["decision"] == ("lower" if found["high"] < 0 else "open")
    assert sentence({"n_models": None, **found}).startswith(
        "full cohort − its easy part, score on tier 1 of m: "
    )


def one_reader(patients: int, accuracy: dict[str, float], part: Sequence[str]) -> Row:
    """A reader that is as good on the part as on the rest; the part has three answers to each `L01`."""
    dice = random.Random(1)
    rows = []
    for number in range(patients):
        patient = f"p{number:03d}"
        for subtask, share in accuracy.items():
            gold = dice.choice("AB")
            parsed = gold if dice.random() < share else "AB".replace(gold, "")
            if subtask != "L01" or patient not in part[3:]:
                rows.append(verdict(patient, subtask, gold, parsed))
    answers = ArmAnswers.of(from_rows(rows, VERDICTS))
    (found,) = full_minus_part(answers, "public", part, ARMS, Settings(5, 200, 1))
    return found


@pytest.mark.parametrize("accuracy", [{"P01": 0.9, "L01": 0.4}, {"P01": 0.95}])
def test_a_reader_as_good_on_the_part_as_on_the_rest_differs_on_none(accuracy: dict[str, float]) -> None:
    """The part has too few items of a hard subtask; or by chance it has no error."""
    found = one_reader(200, accuracy, [f"p{number:03d}" for number in range(40)])
    assert abs(found["difference"]) < 6
    assert found["decision"] == "open"


def test_part_and_remainder_keep_their_sizes() -> None:
    inside = np.array([True, False, True, False, False])
    weights = separate_weights(inside, 20, 3)
    assert (weights[0] == 1).all()
    assert (weights[:, inside].sum(axis=1) == 2).all()
    assert (weights[:, ~inside].sum(axis=1) == 3).all()


@pytest.mark.parametrize("n_missing", [0, 20])
def test_shift_of_gold_answers(n_missing: int) -> None:
    verdicts = cohort()
    missing = dict.fromkeys(("parsed", "parse_status", "correct", "counts")) | {"status": "overflow"}
    rows = [row | missing for row in verdicts.to_pylist()[:n_missing]]
    share_of_b = sum(row["gold"] == ["B"] for row in verdicts.to_pylist()) / 60
    answers = ArmAnswers.of(pa.concat_tables([from_rows(rows, VERDICTS), verdicts.slice(n_missing)]))
    assert gold_shift(answers, EASY) == {"L01": pytest.approx(share_of_b)}


def test_patients_are_in_the_subgroups_that_all_of_their_studies_name(tmp_path: Path) -> None:
    store = make_phantoms(tmp_path, 5) / "store"
    cohort = read_cohort(store)
    assert cohort is not None
    told = [{"vendor": "A"}, {"vendor": "A", "sex": "female"}, {"vendor": "B"}, {}, {"vendor": "B"}]
    studies = {
        name: record.model_copy(update={"subgroups": words})
        for (name, record), words in zip(cohort.studies.items(), told, strict=True)
    }
    # a second study of the first patient, on another vendor's scanner
    row = volume_row("PH-0006", "cine_sax", 3, 6) | {"patient_id": "PH-0001", "cohort": []}
    write_part(
        store / "volumes",
        from_rows([row | {"part": "two.parquet", "row_group": 0}], VOLUMES),
        VOLUMES,
        name="two.parquet",
    )
    (store / "frames" / "two.parquet").touch()
    studies["PH-0006"] = studies["PH-0005"].model_copy(update={"part": "two.parquet"})
    write_cohort(store, Cohort(window_pct=cohort.window_pct, studies=studies, failed={}))
    judged = [f"PH-000{number}" for number in range(1, 5)]
    assert groups_of(store, judged).subgroups == {
        "vendor": {"A": {"PH-0002"}, "B": {"PH-0003"}},
        "sex": {"female": {"PH-0002"}},
    }


@pytest.mark.parametrize(("n", "has_interval"), [(4, False), (12, True)])
def test_a_part_of_few_patients_supports_no_claim(n: int, has_interval: bool) -> None:
    """All of the part are right: before, the interval was that of as many patients as the full cohort has."""
    part = [f"p{patient:02d}" for patient in range(n)]
    rows = [
        row | {"parsed": row["gold"] if row["patient_id"] in part else ["C"]} for row in cohort().to_pylist()
    ]
    answers = ArmAnswers.of(from_rows(rows, VERDICTS))
    (found,) = full_minus_part(answers, "few", part, ARMS, Settings(1, 200, 1))
    assert found["difference"] < -50
    assert (found["n_patients"], found["decision"]) == (n, "open")
    assert np.isnan(found["low"]) != has_interval
