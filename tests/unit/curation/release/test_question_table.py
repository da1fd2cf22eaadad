"""The tables of a release, loaded with the library that most of their readers use."""

import json
import socket
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest

from cardiolens.config.dataset import Windows
from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.curation.release import question_table
from cardiolens.curation.release.question_table import Contents, read_contents, rows_by_study, write_rows
from cardiolens.curation.release.verify import differences
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.feature_store import look_at
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.questions import given_questions
from cardiolens.study.manifest import read_study
from tests.unit.curation.release.released_phantoms import COHORTS, release_phantoms


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release_phantoms(tmp_path_factory.mktemp("release"), "frames=true", "references=true")


def nobody(*_: object) -> None:
    raise AssertionError("the network was asked")


@pytest.fixture
def loaded(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> datasets.DatasetDict:
    monkeypatch.setattr(socket.socket, "connect", nobody)
    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    return datasets.load_dataset(str(released), cache_dir=str(tmp_path))


@pytest.mark.full
def test_it_loads_without_network_with_the_counts_of_the_card(
    released: Path, loaded: datasets.DatasetDict
) -> None:
    facts = json.loads((released / "release.json").read_text())
    counts = {name.replace("-", "_"): told["questions"] for name, told in facts["cohorts"].items()}
    assert {name: split.num_rows for name, split in loaded.items()} == counts
    assert sorted(counts) == ["dev", "test_b"]
    card = (released / "README.md").read_text()
    for name, told in facts["cohorts"].items():
        assert f"| {name} | {told['patients']} | {told['studies']} | {told['questions']} |" in card
    for cohort, split in zip(COHORTS, ("dev", "test_b"), strict=True):
        assert set(loaded[split]["cohort"]) == {cohort}
    assert list(differences(released)) == []


def test_a_row_asks_the_question_in_the_words_of_the_file(
    released: Path, loaded: datasets.DatasetDict
) -> None:
    given = given_questions(released / "questions.jsonl", load_catalogue("openprotocol-1"))
    rows = {row["qa_id"]: row for split in loaded.values() for row in split.remove_columns("frames")}
    n_reports = 0
    for one in given:
        row, question = rows.pop(one.question.qa_id), one.question
        assert row["question"] == question.question
        assert row["options"] == [option.model_dump() for option in question.options]
        assert row["patient_id"] == question.patient_id
        assert (row["subtask"], row["tier"], row["origin"]) == (question.subtask, question.tier, "phantom")
        assert row["verified"]
        if question.answer_type == "report":
            n_reports += 1
            assert row["answer"] is None
            assert json.loads(row["reference"])["impression"] == question.reference.impression
        else:
            assert row["answer"] == question.answer
        assert all((released / path).is_file() for path in row["volumes"])
        study = read_study(released / "studies" / row["study_id"])
        assert len(row["volumes"]) == len(study.manifest.volumes)
    assert rows == {}
    assert n_reports > 0


def test_frames_are_those_of_a_sweep_with_the_prompt_around_them(
    released: Path, loaded: datasets.DatasetDict
) -> None:
    row = next(one for one in loaded["dev"] if one["subtask"] == "C01")
    catalogue = load_catalogue("openprotocol-1")
    seen = look_at(read_study(released / "studies" / row["study_id"]), Windows())
    clinical = SelectorSpec(name="clinical", kind="clinical")
    selection = choose(clinical, None, seen.structure, catalogue["C01"], 16)
    assert len(row["frames"]) == len(selection.frames) == 16
    for picture, frame in zip(row["frames"], selection.frames, strict=True):
        assert (np.asarray(picture) == seen.pixels[frame.volume_id][frame.idx]).all()
    assert row["prompt"].count("<image>") == 16
    assert row["prompt"].startswith(f"Frame 1: {row['captions'][0]}\n<image>\nFrame 2: ")
    assert row["question"] in row["prompt"]
    assert all(f"{option['key']}. {option['text']}" in row["prompt"] for option in row["options"])
    assert row["skipped"] is None


def test_a_picture_of_many_questions_is_stored_once(released: Path) -> None:
    for path in sorted(released.glob("data/*/*.parquet")):
        pictures = pq.read_table(path, columns=["frames"])["frames"].to_pylist()
        every = [picture["bytes"] for row in pictures for picture in row]
        assert len(every) > 3 * len(set(every))
        assert path.stat().st_size < 1.2 * sum(map(len, set(every))) + 100_000


def written(held: Contents, folder: Path, *, frames: bool) -> list[dict[str, Any]]:
    catalogue = load_catalogue("openprotocol-1")
    groups = rows_by_study("test-b", held, catalogue, canary="c", frames=frames)
    n = write_rows(folder, groups, frames=frames)
    rows = [row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    assert len(rows) == len(held.cohorts["test-b"]) == n
    return rows


def test_a_large_cohort_is_divided_between_studies(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_table, "MOST_PIXELS", 1)
    held = read_contents(released, load_catalogue("openprotocol-1"))
    rows = written(held, tmp_path / "divided", frames=True)
    files = sorted((tmp_path / "divided").glob("*.parquet"))
    assert [path.name for path in files] == ["0000.parquet", "0001.parquet"]
    assert [len(set(pq.read_table(path)["study_id"].to_pylist())) for path in files] == [1, 1]
    assert len({row["qa_id"] for row in rows}) == len(rows)
