"""Whoever a file is of: in no layout are two people one, or one person two; what is unclear is held."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.import_run import ingest
from cardiolens.curation.ingest.owners import IDS_DIFFER, NO_SUBJECT, roles_by_path
from tests.unit.curation.ingest.exports import CINE, header, rejects, save

FOLDER = Path(__file__).parent / "layouts"
LAYOUTS = json.loads((FOLDER / "layouts.json").read_text(encoding="utf-8"))
DICOM = json.loads((FOLDER / "dicom.json").read_text(encoding="utf-8"))
MOST_HELD = 89  # layouts of which a person must state `subject` for some files


@pytest.mark.parametrize("name", LAYOUTS)
def test_nobody_is_merged_and_nobody_is_split(name: str) -> None:
    layout: dict[str, Any] = LAYOUTS[name]
    found = roles_by_path(list(layout["files"]))
    patients: dict[str, set[str]] = defaultdict(set)
    examinations: dict[str, set[str]] = defaultdict(set)
    for path, truth in layout["files"].items():
        if not found[path].unclear:
            patients[truth.split("/")[0]].add(found[path].patient)
            examinations[truth].add(found[path].study)
    check(patients, examinations)


def test_most_folders_need_no_word_of_a_person() -> None:
    found = [roles_by_path(list(each["files"])) for each in LAYOUTS.values()]
    assert sum(any(owner.unclear for owner in each.values()) for each in found) <= MOST_HELD


def test_what_a_person_states_holds_and_what_it_leaves_out_is_held() -> None:
    found = roles_by_path(["A/S001_cine.nii", "A/S002_lge.nii", "A/S001_t2.nii", "A/x.nii"], subject=r"S\d+")
    assert [owner.patient for owner in found.values()] == ["S001", "S002", "S001", ""]
    assert [owner.unclear for owner in found.values()] == ["", "", "", NO_SUBJECT]
    visits = roles_by_path(["A/ses-1/cine.nii", "A/ses-2/lge.nii"], subject=r"^(\w+)/ses-\d")
    assert {(owner.patient, owner.study) for owner in visits.values()} == {("A", "A/ses-1"), ("A", "A/ses-2")}
    [without] = roles_by_path(["b.nii"], subject="(a)|b").values()
    assert without.unclear == NO_SUBJECT, "the group of the patient matches nothing"
    together = roles_by_path(["501_cine.nii", "601_lge.nii"], subject="")
    assert {owner.study for owner in together.values()} == {""}


def test_a_superscript_is_no_number_of_a_phase() -> None:
    [role] = roles_by_path(["p/cine_frame_².nii"]).values()
    assert role.phase is None


def test_ids_of_sidecars_hold_against_folders() -> None:
    paths = ["5/cine.nii", "6/lge.nii", "7/cine.nii", "7/lge.nii", "7/t2.nii", "8/cine.nii", "8/lge.nii"]
    ids = dict(zip(paths, [("A", "u"), ("A", "u"), ("B", ""), ("C", ""), ("", ""), ("D", "")], strict=False))
    found = roles_by_path(paths, ids=ids)
    assert [found[path].patient for path in paths[:2]] == ["ID A"] * 2
    assert len({found[path].study for path in paths[:2]}) == 1
    assert found["7/cine.nii"].patient != found["7/lge.nii"].patient
    assert found["7/t2.nii"].unclear == IDS_DIFFER
    assert found["8/cine.nii"].study == found["8/lge.nii"].study


@pytest.mark.parametrize("name", DICOM)
def test_headers_tell_who_is_who(name: str, tmp_path: Path) -> None:
    """One study for each examination; patients by PatientID, unless birth date or sex contradict it."""
    for number, (path, said) in enumerate(DICOM[name]["files"].items()):
        truth, patient, born, sex, what = said
        dataset = header(
            PatientID=patient,
            PatientName=None,
            PatientBirthDate=born,
            PatientSex=sex,
            StudyInstanceUID=study_uid(truth),
            SeriesInstanceUID=f"1.3.{number}",
            SeriesDescription=what,
            **CINE,
        )
        save(dataset, tmp_path / "in" / path)
    ingest(IngestSpec(source=tmp_path / "in", out=tmp_path / "out", links=tmp_path / "links"))
    truth_of = {study_uid(said[0]): said[0] for said in DICOM[name]["files"].values()}
    patients: dict[str, set[str]] = defaultdict(set)
    examinations: dict[str, set[str]] = defaultdict(set)
    for line in map(json.loads, (tmp_path / "links").read_text().splitlines()):
        if "study" in line:
            truth = truth_of[line["study"]]
            patients[truth.split("/")[0]].add(line["patient_id"])
            examinations[truth].add(line["study_id"])
    assert examinations.keys() == set(truth_of.values())
    check(patients, examinations)


def test_one_id_of_two_people_and_of_somebody_is_held(tmp_path: Path) -> None:
    for number, born in enumerate(("19550218", "19831130", None)):
        study = f"1.2.{number + 1}"
        facts = {
            "PatientID": "7",
            "PatientBirthDate": born,
            "PatientSex": None,
            "SeriesInstanceUID": f"{study}.1",
        }
        save(header(StudyInstanceUID=study, **facts, **CINE), tmp_path / "in" / str(number))
    ingest(IngestSpec(source=tmp_path / "in", out=tmp_path / "out"))
    assert sum(line["reason"] == "patient_unclear" for line in rejects(tmp_path / "out")) == 1


def study_uid(truth: str) -> str:
    return f"1.2.{int.from_bytes(truth.encode(), 'big')}"


def check(*found: dict[str, set[str]]) -> None:
    for keys in found:
        assert all(len(each) == 1 for each in keys.values()), "split"
        assert len(set().union(*keys.values())) == len(keys), "merged"
