"""`python -m cardiolens.ingest init`: skeletons that are read once they are filled in, and not before."""

import json
from pathlib import Path

import numpy as np
import pytest
from study_folders import SHORT_AXIS_AFFINE, voxels, write_nifti

from cardiolens.base.errors import InputError
from cardiolens.commands.ingest import main
from cardiolens.config.dataset import Windows
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.study.group import prepare_group
from cardiolens.study.manifest import read_study
from tests.unit.questions_file import read_questions

CATALOGUE = load_catalogue("openprotocol-1")


def init(out: Path) -> int:
    return main(["init", f"out={out}"])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A data folder of two studies: one whose files are named as volumes are, one whose are not."""
    write_nifti(tmp_path / "studies" / "S1" / "cine_sax.nii.gz", voxels().reshape(6, 5, 3, 4))
    write_nifti(tmp_path / "studies" / "S1" / "LGE_4ch.nii", voxels(1, 1))
    write_nifti(tmp_path / "studies" / "S2" / "series 12.nii", voxels(4, 1))
    (tmp_path / "studies" / "S2" / "._series 12.nii").write_bytes(b"\0")
    (tmp_path / "studies" / "__MACOSX").mkdir()
    return tmp_path


def edited(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_skeletons_are_read_once_they_are_filled_in(out):
    assert init(out) == 0
    first, second = (out / "studies" / name / "study.json" for name in ("S1", "S2"))
    found = {entry["path"]: entry["sequence"] for entry in json.loads(first.read_text())["volumes"]}
    assert found == {"LGE_4ch.nii": "lge", "cine_sax.nii.gz": "cine"}
    edited(first, patient_id="P1")
    entry = json.loads(second.read_text())["volumes"][0]
    edited(second, patient_id="P2", volumes=[entry | {"sequence": "t2", "view": "sax"}])
    for path in (first, second):
        (outcome,) = prepare_group(out / "store", "p.parquet", [path.parent], Windows())
        assert outcome.error == ""
    lines = [json.loads(line) for line in (out / "questions.jsonl").read_text().splitlines()]
    filled = [line | {"answer": [CATALOGUE[line["subtask"]].keys[0]]} for line in lines]
    (out / "questions.jsonl").write_text("\n".join(map(json.dumps, filled)))
    assert read_questions(out / "questions.jsonl", CATALOGUE).num_rows == len(lines)
    asked = {(line["study"], line["subtask"]) for line in lines}
    assert ("S1", "C01") in asked
    assert ("S1", "L01") in asked
    assert ("S2", "D01") in asked
    assert not [name for study, name in asked if study == "S2" and name != "D01"]


def test_what_is_not_filled_in_is_refused(out):
    init(out)
    with pytest.raises(InputError, match="patient_id: String should have at least 1 character"):
        read_study(out / "studies" / "S1")
    edited(out / "studies" / "S2" / "study.json", patient_id="P2")
    with pytest.raises(InputError, match="unknown sequence ''; expected one of cine, lge"):
        read_study(out / "studies" / "S2")
    with pytest.raises(InputError, match="answer is empty; pick from"):
        read_questions(out / "questions.jsonl", CATALOGUE)


def test_without_files_there_is_one_example(tmp_path):
    assert init(tmp_path / "new") == 0
    folder = tmp_path / "new" / "studies" / "S001"
    write_nifti(folder / "lge_sax.nii.gz", voxels(4, 1))
    edited(folder / "study.json", patient_id="P1")
    (outcome,) = prepare_group(tmp_path / "store", "p.parquet", [folder], Windows())
    assert outcome.error == ""


@pytest.mark.parametrize("there", ["studies/S2/study.json", "questions.jsonl"])
def test_nothing_is_overwritten_and_nothing_half_written(out, there, capsys):
    (out / there).write_text("mine")
    before = sorted(out.rglob("*"))
    assert init(out) == 2
    assert f"{there}: exists already, and init overwrites nothing" in capsys.readouterr().err
    assert sorted(out.rglob("*")) == before
    assert (out / there).read_text() == "mine"


def test_a_link_in_the_place_of_a_skeleton_is_not_written_through(out, tmp_path):
    (out / "questions.jsonl").symlink_to(tmp_path / "elsewhere")
    assert init(out) == 2
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_in_the_place_of_the_studies_is_named(tmp_path, capsys):
    (tmp_path / "studies").write_text("")
    assert init(tmp_path) == 2
    assert "studies: cannot be read (Not a directory)" in capsys.readouterr().err


def test_the_display_that_affines_decide_is_filled_in(tmp_path):
    """Columns run the other way in one file; a header without an orientation leaves its display open."""
    mirrored = SHORT_AXIS_AFFINE.copy()
    mirrored[:3, 1] *= -1
    folder = tmp_path / "studies" / "S1"
    write_nifti(folder / "cine_sax.nii.gz", voxels().reshape(6, 5, 3, 4))
    write_nifti(folder / "lge_sax.nii.gz", voxels(3, 1, seed=8), mirrored)
    write_nifti(folder / "t2_sax.nii.gz", voxels(3, 1, seed=9), np.diag([2.0, 2, 10, 1]))
    assert init(tmp_path) == 0
    entries = json.loads((folder / "study.json").read_text())["volumes"]
    found = {entry["path"].partition(".")[0]: entry["display_transform"] for entry in entries}
    assert found == {"cine_sax": {}, "lge_sax": {"flip_cols": True}, "t2_sax": {}}
    edited(folder / "study.json", patient_id="P1")
    (outcome,) = prepare_group(tmp_path / "store", "p.parquet", [folder], Windows())
    assert outcome.error == ""
