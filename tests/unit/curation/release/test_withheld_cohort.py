"""A test set whose answers stay at home: they are not in the release, and only its owner can read them."""

import json
import stat
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pyarrow.parquet as pq
import pytest

from cardiolens.base.errors import InputError
from cardiolens.curation.release.make import release
from cardiolens.curation.release.verify import differences
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.questions import given_questions
from tests.unit.curation.release.test_release import SECRET, line, write_lines, write_study

ANSWER = "ANSWERED-WITH"  # stands in every text of a withheld reference


def report(number: int) -> dict[str, Any]:
    """A question for a report, whose reference is one study's."""
    told = {
        "schema": "qa-1",
        "qa_id": f"r{number}",
        "study_id": f"{SECRET}-{number}",
        "patient_id": f"{SECRET}-{number}",
    }
    told |= {"tier": 2, "subtask": "R-T2", "sequence": "t2", "question": "Write it.", "answer_type": "report"}
    text = f"{ANSWER}-{number}."
    told["reference"] = {"fields": {"signal": "Normal", "levels": []}, "findings": text, "impression": text}
    verified = {"status": "verified", "verdict": "correct"}
    return told | {"origin": "report", "verification": verified, "protocol": "openprotocol-1"}


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Four studies of four patients: with a mask, a choice, and a report each."""
    for number in range(1, 5):
        write_study(tmp_path, number, f"{SECRET}-{number}")
        folder = tmp_path / "studies" / f"{SECRET}-{number}"
        nibabel.save(nibabel.Nifti1Image(np.full((4, 5, 3), 9, np.int16), np.eye(4)), folder / "m.nii.gz")
        told = json.loads((folder / "study.json").read_text())
        told["volumes"][0]["mask"] = {"path": "m.nii.gz"}
        (folder / "study.json").write_text(json.dumps(told))
    lines = [entry for number in range(1, 5) for entry in (line(number, "AB"[number % 2]), report(number))]
    write_lines(tmp_path, lines)
    given = {
        "questions": "q.jsonl",
        "studies": "studies",
        "out": "out",
        "links": "links.jsonl",
        "answers": "home/a.jsonl",
    }
    named = [f"{name}={tmp_path / path}" for name, path in given.items()]
    return [
        *named,
        "name=ours",
        "licence=internal",
        "cohorts=dev:0.5,test:0.5",
        "withheld=[test]",
        "references=true",
    ]


def asked(out: Path) -> list[Any]:
    return list(given_questions(out / "questions.jsonl", load_catalogue("openprotocol-1")))


def test_the_answers_of_the_cohort_are_at_home_and_nowhere_else(words: list[str], tmp_path: Path) -> None:
    assert release(words) == 0
    out, home = tmp_path / "out", tmp_path / "home" / "a.jsonl"
    of_study = {path.parent.name: json.loads(path.read_text()) for path in out.glob("studies/*/study.json")}
    test = {name for name, told in of_study.items() if told["cohort"] == ["test"]}
    assert len(test) == 2
    for row in asked(out):
        kept = row.question.study_id in test
        assert row.question.withheld is kept
        assert not kept or row.question.verification == {"status": "verified"}
        assert kept == (not row.question.answer and row.question.reference is None)
        assert row.question.verified
    assert [name for name, told in of_study.items() if "mask" in told["volumes"][0]] == sorted(
        of_study.keys() - test
    )
    assert not [path for name in test for path in (out / "studies" / name).glob("*_mask*")]
    links = {
        one["study"]: one["id"]
        for one in map(json.loads, (tmp_path / "links.jsonl").read_text().splitlines())
    }
    every_text = b"".join(path.read_bytes() for path in out.rglob("*.json*"))
    every_text += b"".join(repr(pq.read_table(path).to_pylist()).encode() for path in out.rglob("*.parquet"))
    for number in range(1, 5):
        kept = links[f"{SECRET}-{number}"] in test
        assert (f"{ANSWER}-{number}.".encode() in every_text) is not kept
    facts = json.loads((out / "release.json").read_text())
    assert facts["withheld"] == ["test"]
    assert facts["subtasks"]["L01"]["withheld"] == 2
    assert "The answers of test are not part of the release" in (out / "README.md").read_text()
    assert list(differences(out)) == []
    kept = list(given_questions(home, load_catalogue("openprotocol-1")))
    answers = {row.question.study_id: row.question.answer for row in kept if row.question.subtask == "L01"}
    assert answers == {
        links[f"{SECRET}-{n}"]: ["AB"[n % 2]] for n in range(1, 5) if links[f"{SECRET}-{n}"] in test
    }
    patients = {json.loads(path.read_text())["patient_id"] for path in out.glob("studies/*/study.json")}
    assert {row.question.patient_id for row in kept} <= patients
    assert {row.question.canary for row in kept} == {facts["canary"]}
    assert SECRET not in home.read_text()
    assert stat.S_IMODE(home.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"withheld": "[train]"}, "train is no cohort; choose from dev, test"),
        ({"answers": None}, "withheld and answers belong together"),
        ({"answers": "{root}/out/a.jsonl"}, "answers lies in out"),
        ({"answers": "{root}/q.jsonl"}, "exists, and may be the only answers of a release"),
    ],
)
def test_what_would_lose_or_publish_answers_is_refused(
    words: list[str], tmp_path: Path, changes: dict[str, str | None], said: str
) -> None:
    named = dict(word.split("=", 1) for word in words) | changes
    given = [f"{name}={value.format(root=tmp_path)}" for name, value in named.items() if value is not None]
    with pytest.raises(InputError, match=said):
        release(given)
    assert not (tmp_path / "out").exists()


def test_a_released_file_without_answers_is_not_released_again(words: list[str], tmp_path: Path) -> None:
    release(words)
    again = {"questions": "out/questions.jsonl", "studies": "out/studies", "out": "again"}
    given = [f"{name}={tmp_path / path}" for name, path in again.items()]
    with pytest.raises(InputError, match="others are withheld already"):
        release([*given, "name=ours", "licence=internal", "references=true"])
