"""A release: new ids that lead nowhere, cohorts of patients, and an index that nothing escapes."""

import gzip
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.curation.release.make import _cohorts
from cardiolens.curation.release.verify import differences, verify
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.study.manifest import read_study
from cardiolens.workflow.sweep import sweep
from cardiolens.workflow.sweep_checks import check_release
from tests.unit.given_words import release
from tests.unit.questions_file import read_questions

SECRET = "MUSTERMANN"


def write_study(root: Path, number: int, patient: str) -> None:
    """A study of one file whose header, report and folder name somebody."""
    folder = root / "studies" / f"{SECRET}-{number}"
    folder.mkdir(parents=True)
    image = nibabel.Nifti1Image(np.full((4, 5, 3), number, np.int16), np.diag([1.5, 1.5, 8.0, 1.0]))
    image.header["descrip"] = image.header["aux_file"] = SECRET.encode()
    image.header["db_name"] = SECRET.encode()
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", SECRET.encode()))
    nibabel.save(image, folder / f"{SECRET}.nii.gz")
    told = {
        "schema": "study-1",
        "study_id": f"{SECRET}-{number}",
        "patient_id": patient,
        "report_id": SECRET,
        "cohort": [SECRET.lower()],
        "sex": "female",
        "volumes": [{"sequence": "lge", "view": "sax", "path": f"{SECRET}.nii.gz"}],
    }
    (folder / "study.json").write_text(json.dumps(told))


def line(number: int, answer: str = "A", **more: Any) -> dict[str, Any]:
    verified = {"status": "verified", "stage": 8, "by": [SECRET], "at": "2026", "kappa": 0.9}
    told = {"study": f"{SECRET}-{number}", "subtask": "L01", "answer": answer, "origin": "report"}
    return told | {"evidence": [SECRET], "verification": verified} | more


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Six studies of four patients, and a question on each."""
    for number in range(1, 7):
        write_study(tmp_path, number, f"{SECRET}-{number % 4}")
    write_lines(tmp_path, [line(number, "AB"[number % 2]) for number in range(1, 7)])
    given = {"questions": "q.jsonl", "studies": "studies", "out": "out"}
    return [f"{name}={tmp_path / path}" for name, path in given.items()] + ["name=ours", "licence=internal"]


def write_lines(root: Path, lines: list[dict[str, Any]]) -> None:
    (root / "q.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))


def every_byte(folder: Path) -> bytes:
    """All names and contents, unzipped."""
    found = b""
    for path in sorted(folder.rglob("*")):
        found += str(path.relative_to(folder)).encode()
        if path.is_file():
            stored = path.read_bytes()
            found += gzip.decompress(stored) if path.suffix == ".gz" else stored
    return found


def test_nothing_of_who_it_was_is_left_and_all_else_is(words: list[str], tmp_path: Path) -> None:
    assert release([*words, "cohorts=dev:0.5,test:0.5", f"links={tmp_path}/links.jsonl"]) == 0
    out = tmp_path / "out"
    assert SECRET.lower().encode() not in every_byte(out).lower()
    links = {one["id"]: one for one in map(json.loads, (tmp_path / "links.jsonl").read_text().splitlines())}
    patients: dict[str, set[str]] = {}
    for new, was in links.items():
        study = read_study(out / "studies" / new)
        number = int(was["study"].rsplit("-")[-1])
        (volume,) = study.manifest.volumes
        image = nibabel.load(study.folder / volume.path)
        assert (np.asarray(image.dataobj) == number).all()
        assert image.affine[2, 2] == 8
        assert study.manifest.sex == "female"
        assert study.manifest.patient_id == was["patient_id"]
        patients.setdefault(was["patient_id"], set()).update(study.manifest.cohort)
    assert sorted(map(len, patients.values())) == [1, 1, 1, 1]
    questions = read_questions(out / "questions.jsonl", load_catalogue("openprotocol-1"))
    answers = {row["study_id"]: row["answer"] for row in questions.to_pylist()}
    assert answers == {new: ["AB"[int(was["study"][-1]) % 2]] for new, was in links.items()}
    assert list(differences(out)) == []
    facts = json.loads((out / "release.json").read_text())
    assert facts["cohorts"] == {name: facts["cohorts"][name] | {"patients": 2} for name in ("dev", "test")}
    assert facts["subtasks"]["L01"] == {"A": 3, "B": 3, "questions": 6}
    head = yaml.safe_load((out / "README.md").read_text().split("---")[1])
    assert head["license_name"] == "internal"
    assert facts["canary"] in (out / "README.md").read_text()


def test_a_sweep_names_it(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release(words)
    monkeypatch.chdir(tmp_path)
    spec = read_spec(["dataset=./out", "model=[oracle]"])
    assert (spec.dataset.name, spec.dataset.studies) == ("ours", tmp_path / "out" / "studies")
    assert spec.dataset.questions.is_file()
    told = spec.dataset.release
    assert told is not None
    assert (told.name, told.number) == ("ours", "1.0")
    assert told.sha256 == sha256((tmp_path / "out" / "release.json").read_bytes()).hexdigest()
    check_release(spec)


def test_the_folder_of_a_release_may_stand_in_quotes(words: list[str], tmp_path: Path) -> None:
    release(words)
    plain, *quoted = (
        read_spec([f"dataset={mark}{tmp_path}/out{mark}", "model=[oracle]"]) for mark in ("", "'", '"')
    )
    assert quoted == [plain, plain]


def test_a_sweep_of_changed_questions_ends_before_it_begins(words: list[str], tmp_path: Path) -> None:
    release(words)
    _change(tmp_path / "out" / "questions.jsonl")
    spec = read_spec([f"dataset={tmp_path}/out", "model=[oracle]", f"outputs={tmp_path}/outputs"])
    with pytest.raises(InputError, match=r"questions\.jsonl: is not the file of ours 1\.0"):
        sweep(spec)
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize(
    ("entry", "value", "said"),
    [
        ("number", "1.0; DROP", "its release.json has no legal number"),
        ("files", {"questions.jsonl": {"sha256": "${oc.env:HOME}"}}, "has no legal questions_sha256"),
        ("protocol", "../elsewhere", "names a protocol"),
        ("protocol", ["x"], "names a protocol"),
    ],
)
def test_an_index_that_is_of_no_release_or_leads_elsewhere_is_refused(
    words: list[str], tmp_path: Path, entry: str, value: object, said: str
) -> None:
    release(words)
    index = tmp_path / "out" / "release.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | {entry: value}))
    with pytest.raises(InputError, match=said):
        read_spec([f"dataset={tmp_path}/out", "model=[oracle]"])


def test_a_link_in_a_release_is_not_followed(words: list[str], tmp_path: Path) -> None:
    release(words)
    path = tmp_path / "out" / "studies"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="studies is a link"):
        read_spec([f"dataset={tmp_path}/out", "model=[oracle]"])


def test_the_conf_of_a_release_is_not_read(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its makers could make `oracle` an engine that runs their code."""
    release(words)
    folder = tmp_path / "out"
    (folder / "conf" / "model").mkdir(parents=True)
    theirs = "oracle:\n  name: oracle\n  engine: vllm\n  source: theirs/model\n  trust_remote_code: true\n"
    (folder / "conf" / "model" / "oracle.yaml").write_text(f"# @package model\n{theirs}")
    (folder / "conf" / "sweep.yaml").write_text("budget: [1]\n")
    monkeypatch.chdir(folder)
    [model] = read_spec(["dataset=./", "model=[oracle]"]).model
    assert model.engine == "oracle"


def _change(path: Path) -> None:
    """Change one byte; the size stays."""
    path.write_bytes(path.read_bytes()[:-1] + b" ")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda out: next(out.glob("studies/*/*.nii.gz")).unlink(), "is missing"),
        (lambda out: _change(out / "questions.jsonl"), "questions.jsonl: is not what was released"),
        (lambda out: (out / "studies" / "more.txt").write_text("x"), "more.txt: is not of this release"),
    ],
)
def test_verify_names_what_differs(
    damage: Callable[[Path], object], said: str, words: list[str], tmp_path: Path
) -> None:
    release(words)
    digest = sha256((tmp_path / "out" / "release.json").read_bytes()).hexdigest()
    assert verify(tmp_path / "out", digest) == 0
    assert verify(tmp_path / "out", "0" * 64) == 1
    damage(tmp_path / "out")
    (told,) = differences(tmp_path / "out")
    assert said in told


def test_a_patient_in_two_cohorts_is_named(words: list[str], tmp_path: Path) -> None:
    release([*words, "cohorts=dev:0.5,test:0.5"])
    paths = sorted((tmp_path / "out").glob("studies/*/study.json"))
    for path in paths:
        told = json.loads(path.read_text())
        path.write_text(json.dumps(told | {"patient_id": "P0001"}))
    assert any("patient P0001: is in cohorts dev, test" in told for told in differences(tmp_path / "out"))


@pytest.mark.parametrize(
    ("lines", "more", "said"),
    [
        ([line(1), line(2, verification={"status": "draft"})], [], "line 2: nobody verified"),
        ([line(9)], [], "1 studies of questions are not there"),
        ([line(1)], ["cohorts=dev:0.5,test:0.6"], "sum 1"),
        ([line(1)], ["cohorts=dev:0.2,test:0.8"], "dev would hold none of the 1 patients"),
        ([line(1)], ["name=Our CMR"], "name"),
    ],
)
def test_what_cannot_be_released_is_refused_and_nothing_written(
    lines: list[dict[str, Any]], more: list[str], said: str, words: list[str], tmp_path: Path
) -> None:
    write_lines(tmp_path, lines)
    named = {word.partition("=")[0] for word in more}
    with pytest.raises(InputError, match=said):
        release([*(word for word in words if word.partition("=")[0] not in named), *more])
    assert not (tmp_path / "out").exists()


def test_unverified_answers_are_taken_by_name_and_told(words: list[str], tmp_path: Path) -> None:
    write_lines(tmp_path, [line(1), line(2, verification={"status": "draft"})])
    release([*words, "allow_unverified=true"])
    assert "Nobody verified 1 of the 2 answers." in (tmp_path / "out" / "README.md").read_text()


@given(st.integers(1, 60), st.lists(st.floats(0.05, 1), min_size=1, max_size=4))
def test_every_patient_is_in_one_cohort_and_shares_hold(patients: int, weights: list[float]) -> None:
    shares = {f"c{place}": weight / sum(weights) for place, weight in enumerate(weights)}
    names = [f"p{number}" for number in range(patients)]
    cohort_of, renamed = _cohorts(shares, names, "secret")
    assert cohort_of.keys() == renamed.keys() == set(names)
    assert len(set(renamed.values())) == patients
    for name, share in shares.items():
        assert abs(sum(one == name for one in cohort_of.values()) - share * patients) <= 1
