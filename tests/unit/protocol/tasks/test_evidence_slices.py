"""Slices that a question names as its evidence: refused where they do not exist, and of no other effect."""

import json
from pathlib import Path
from typing import Any

import pytest
from small_cohort import make_cohort, reader, sweep_spec

from cardiolens.base.errors import InputError
from cardiolens.curation.release.kept_record import kept_question
from cardiolens.inference.plan.plan import plan
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.question_evidence import evidence_of
from cardiolens.protocol.tasks.questions import given_questions, questions_table

LGE = {"volume_id": "lge_sax", "slice": 2}
CATALOGUE = load_catalogue("openprotocol-1")


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cohort(tmp_path_factory.mktemp("evidence"), 2)


def with_slices(cohort: Path, path: Path, slices: Any, subtask: str = "L01") -> Path:
    """The questions of the cohort; those of one subtask name evidence slices."""
    lines = [json.loads(line) for line in (cohort / "questions.jsonl").read_text().splitlines()]
    changed = [line | {"evidence_slices": slices} if line["subtask"] == subtask else line for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in changed))
    return path


def test_questions_and_requests_are_as_without_them(cohort: Path, tmp_path: Path) -> None:
    path = with_slices(cohort, tmp_path / "questions.jsonl", [LGE])
    rows = {name: list(given_questions(file, CATALOGUE)) for name, file in files(cohort, path).items()}
    first, second = (questions_table(path, of_file, CATALOGUE, {}) for of_file in rows.values())
    assert first.equals(second)
    evidence = evidence_of([row.question for row in rows["with"]], tmp_path).to_pylist()
    named = {row["qa_id"]: row["slices"] for row in evidence if row["slices"]}
    assert named == {f"PH-000{number}:L01": [LGE | {"phases": []}] for number in (1, 2)}


def files(cohort: Path, path: Path) -> dict[str, Path]:
    return {"without": cohort / "questions.jsonl", "with": path}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"volume_id": "lge_sax", "slice": 3}, "slice is 3; lge_sax has slices 0..2, counted from the base"),
        ({"volume_id": "perf_sax", "slice": 0, "phases": [7, 8]}, "phases has 8; perf_sax has phases 0..7"),
    ],
)
def test_a_slice_that_does_not_exist_is_refused(
    cohort: Path, tmp_path: Path, entry: dict[str, Any], words: str
) -> None:
    path = with_slices(cohort, tmp_path / "questions.jsonl", [LGE, entry])
    spec = sweep_spec(cohort, reader("oracle"), dataset=dataset(cohort, path), outputs=tmp_path / "outputs")
    with pytest.raises(InputError, match=r"questions\.jsonl:\d+: PH-0001:L01: evidence_slices: ") as told:
        plan(spec)
    assert words in str(told.value)
    assert "correct it, or leave it out" in str(told.value)


def dataset(cohort: Path, questions: Path) -> dict[str, Any]:
    return {"name": "small", "studies": cohort, "questions": questions}


def test_a_release_has_none(cohort: Path, tmp_path: Path) -> None:
    rows = list(given_questions(with_slices(cohort, tmp_path / "q.jsonl", [LGE]), CATALOGUE))
    assert "evidence_slices" not in json.dumps([kept_question(row, "questions") for row in rows])
