"""Sets without options through the loader: rankings and numbers, asked, judged, and refused where wrong."""

import base64
import csv
import json
from pathlib import Path
from typing import Any

import pytest
from small_cohort import reader, swept
from test_own_sets import N, make_own, own_records, png, prepared, read, spec_of

from cardiolens.base.errors import InputError

NAMES = ("Fabry disease", "Danon disease", "Cardiac amyloidosis")


def make_rare(folder: Path) -> None:
    """MMRareBench's form as its card names it: TSV, images as a list in base64, a name and its synonyms."""
    (folder / "diagnosis").mkdir()
    with (folder / "diagnosis" / "diagnosis_opened.tsv").open("w", newline="") as file:
        out = csv.writer(file, delimiter="\t")
        out.writerow(["index", "image", "question", "answer", "answer_aliases", "category", "ORPHA_code"])
        for at in range(N):
            images = [base64.b64encode(png(300 + 2 * at + n)).decode() for n in range(2)]
            synonyms = json.dumps(["MARK synonym"]) if at % 2 else ""
            out.writerow([at, json.dumps(images), "Which disease?", NAMES[at % 3], synonyms, "heart", "324"])


def make_volumes(folder: Path, **changes: object) -> None:
    records = [record | {"truth": f"{100 + 10 * at} ml"} for at, record in enumerate(own_records())]
    records[1] |= changes
    make_own(folder, records, options=[], subtask="NML")


def scores(folder: Path, name: str, *models: dict[str, Any]) -> dict[tuple[str, str], float]:
    _, judged = swept(spec_of(folder, name, model=list(models)))
    rows = judged.scores.to_pylist()
    return {(row["arm_id"].split("-")[0], row["metric"]): row["value"] for row in rows}


def test_diagnoses_are_ranked_and_the_place_of_the_true_one_is_scored(tmp_path: Path) -> None:
    make_rare(tmp_path)
    found = prepared(tmp_path, "mmrarebench")
    assert (len(found.cases), dict(found.failed)) == (N, {})
    assert found.cases[1].questions[0].names == ("Danon disease", "MARK synonym")
    third = reader("measuring", "third", place=3)
    got = scores(tmp_path, "mmrarebench", reader("oracle"), third, reader("constant", answer="A"))
    assert [got["oracle", f"recall_at_{most}"] for most in (1, 3, 5)] == [100, 100, 100]
    assert [got["third", f"recall_at_{most}"] for most in (1, 3, 5)] == [0, 100, 100]
    assert got["third", "reciprocal_rank"] == pytest.approx(100 / 3)
    assert got["constant", "recall_at_5"] == 0  # a letter is no list


def test_volumes_of_a_set_are_numbers(tmp_path: Path) -> None:
    make_volumes(tmp_path)
    prepared(tmp_path, "map.yaml")
    got = scores(tmp_path, "map.yaml", reader("oracle"), reader("measuring", "biased", bias=30.0))
    assert (got["oracle", "absolute_error"], got["oracle", "within_tolerance"]) == (0, 100)
    assert (got["biased", "bias"], got["biased", "within_tolerance"]) == (pytest.approx(30), 0)
    assert got["oracle", "constant_error"] == 20


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ("140", r'truth is "140", which has no unit, and ml and l are legal; expected e\.g\. 0\.0 ml'),
        ("140 %", 'truth is "140 %", which has another unit than ml or l'),
        ("9 l", "is outside 0 to 5000 ml"),
        ("", "truth is missing; expected an answer"),
    ],
)
def test_a_number_that_is_not_legal_is_refused_with_row_and_value(
    tmp_path: Path, truth: str, message: str
) -> None:
    make_volumes(tmp_path, truth=truth)
    (error,) = read(tmp_path, "map.yaml").failed.values()
    assert error.startswith(f"{tmp_path}/cases.jsonl:2: ")
    with pytest.raises(InputError, match=message):
        raise InputError(error)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": []}, "expected options, or for questions without any the subtask"),
        ({"subtask": "R10"}, "expected options, or for questions without any the subtask"),
        ({"answer": ["truth", "more?"]}, "answer has several columns"),
    ],
)
def test_a_map_has_options_or_a_subtask(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    make_own(tmp_path, **change)
    with pytest.raises(InputError, match=f"map.yaml: .*{message}"):
        read(tmp_path, "map.yaml")
