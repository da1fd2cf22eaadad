"""Study folders that cannot be used: manifests at the verb, NIfTI files at the worker that reads them."""

import os
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import refused, snapshot
from study_folders import sha256, study, volume, voxels, write_nifti

from cardiolens.commands.command import run_verb
from cardiolens.config.dataset import Windows
from cardiolens.study.group import prepare_group
from cardiolens.workflow.steps.prepare_studies import prepare_dataset

WINDOWS = Windows(pct=(1.0, 99.0))


def prepared(studies: Path, root: Path) -> Callable[[], int]:
    words = ["dataset=real", f"dataset.studies={studies}", "dataset.questions=none.jsonl"]
    return lambda: run_verb(prepare_dataset, [*words, f"store={root}/store"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda whole: b"[" * 100_000, r"Invalid JSON: recursion limit exceeded"),
        (lambda whole: whole[:-1], r"Invalid JSON: EOF while parsing"),
        (lambda whole: whole.replace(b'"Jane Roe"', b'["Jane Roe"]'), r"patient_id: .*valid string"),
        (lambda whole: b'{"patient_name": "Jane Roe", ' + whole[1:], r"unknown key 'patient_name'; expected"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_named_and_not_repeated(change, said, tmp_path, capsys):
    folder = study(tmp_path / "studies" / "S1", patient_id="Jane Roe")
    (folder / "study.json").write_bytes(change((folder / "study.json").read_bytes()))
    message = refused(prepared(folder.parent, tmp_path), rf"S1: study\.json: .*{said}", capsys, tmp_path)
    assert "Jane" not in message


def _same_id(studies: Path) -> None:
    for name in ("S1", "S2"):
        study(studies / name, study_id="S")


def _loop(studies: Path) -> None:
    folder = study(studies / "S1", volume(studies / "S1") | {"path": "loop"})
    (folder / "loop").symlink_to("loop")


def _link_to_nothing(studies: Path) -> None:
    studies.mkdir()
    (studies / "S1").symlink_to("S1")


def _not_text(studies: Path) -> None:
    os.makedirs(os.fsencode(studies) + b"/S\xff")


FOLDERS: list[tuple[Callable[[Path], object], str]] = [
    (_same_id, r"S1: study\.json: study_id 'S' stands in the folders S1, S2; expected one folder a study_id"),
    (_loop, r"S1: loop: leads out of the study folder"),
    (_not_text, r"S\\xff: the folder's name is not UTF-8; .*; rename it"),
    (_link_to_nothing, r"S1: is a link that leads nowhere; expected a study folder"),
    (lambda studies: None, r"studies: cannot be read \(No such file or directory\); expected a folder of"),
    (lambda studies: studies.mkdir(), r"studies: holds no studies; expected a folder of study folders"),
]


@pytest.mark.parametrize(("make", "said"), FOLDERS, ids=range(len(FOLDERS)))
def test_a_folder_that_cannot_be_used_is_named(make, said, tmp_path, capsys):
    make(tmp_path / "studies")
    refused(prepared(tmp_path / "studies", tmp_path), said, capsys, tmp_path)


@pytest.mark.parametrize(
    ("at", "form", "values", "said"),
    [
        (40, "<4h", (3, 32767, 32767, 32767), r"its shape is \(32767, 32767, 32767\); expected"),
        (70, "<h", (128,), r"voxels are of type RGB; expected .*; convert it to grey values"),
        (108, "<f", (1e30,), r"begin at byte 10000000\d+; expected 352"),
        (108, "<f", (float("inf"),), r"its NIfTI header is damaged"),
        (280, "<f", (float("nan"),), r"its affine holds NaN or infinity; .*; re-export it"),
    ],
)
def test_a_header_that_is_of_no_volume_is_named(at, form, values, said, tmp_path):
    folder = tmp_path / "S1"
    entry = volume(folder)
    write_nifti(folder / "cine_sax.nii", voxels())
    whole = bytearray((folder / "cine_sax.nii").read_bytes())
    struct.pack_into(form, whole, at, *values)
    (folder / "cine_sax.nii").write_bytes(whole)
    study(folder, entry | {"path": "cine_sax.nii", "sha256": sha256(folder / "cine_sax.nii")})
    (outcome,) = prepare_group(tmp_path / "store", "part-1.parquet", [folder], WINDOWS)
    assert outcome.record is None
    assert re.match(rf"cine_sax\.nii: .*{said}", outcome.error), outcome.error
    assert snapshot(tmp_path / "store") == {}
