"""Study folders that cannot be used: manifests at the verb, NIfTI files at the worker that reads them."""

import gzip
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from refusals import refused, run_verb, snapshot
from study_folders import sha256, study, volume, voxels, write_nifti

from cardiolens.config.dataset import Windows
from cardiolens.study.group import prepare_group
from cardiolens.workflow.steps.prepare_studies import prepare_dataset

HEADER = b'{"schema": "study-1", "study_id": "S", "patient_id": "P", '
DAMAGED = "its NIfTI header is damaged"
CONVERT = r"expected a single-file NIfTI \(\.nii or \.nii\.gz\); convert the file"

MANIFESTS = [  # content of study.json
    ("nothing", b"", r"Invalid JSON: EOF .*; correct study\.json"),
    ("bytes", b"{\xff", r"byte 1 is not UTF-8; save it as UTF-8; correct study\.json"),
    ("UTF-16", '{"schema": "study-1"}'.encode("utf-16"), r"it is UTF-16 or UTF-32; expected UTF-8; save it"),
    ("a list", b"[]", r"Input should be an object, got \[\]"),
    ("deep", b"[" * 100_000, r"Invalid JSON: recursion limit exceeded"),
    ("cut off", HEADER.replace(b'"P"', b'"Jane Roe"'), r"Invalid JSON: EOF while parsing"),
    (
        "a list of names",
        HEADER.replace(b'"P"', b'["Jane Roe"]') + b'"volumes": []}',
        r"patient_id: Input should be a valid string",
    ),
    ("no volumes", HEADER + b'"volumes": []}', r"volumes: Tuple should have at least 1 item"),
    ("another version", HEADER.replace(b"study-1", b"study-2") + b'"volumes": []}', r"should be 'study-1'"),
    (
        "a name",
        HEADER + b'"patient_name": "Jane Roe"}',
        r"unknown key 'patient_name'; expected only patient_id, age_band, cohort",
    ),
]

ENTRIES = [  # changes of a volume's entry
    ("NaN spacing", {"spacing_mm": [float("nan"), 1.0, 1.0]}, r"spacing_mm\.0: .* finite number, got nan"),
    ("huge counts", {"layout": {"n_slices": 10**30, "n_phases": 4}}, r"layout_mismatch: .* holds 12 frames"),
    ("no such sequence", {"sequence": "t1"}, r"unknown sequence 't1'; expected one of cine, lge, perfusion"),
    ("ED outside", {"ed_phase": 4}, r"volumes\.0: ed_phase is 4; expected 0\.\.3; correct ed_phase; correct"),
    ("a path upwards", {"path": "../S2/a.nii"}, r"\.\./S2/a\.nii: leads out of the study folder"),
    ("a mask upwards", {"mask": {"path": "../m.nii", "sha256": "0" * 64}}, r"\.\./m\.nii: leads out"),
]

WINDOWS = Windows(pct=(1.0, 99.0))


def prepared(studies: Path, root: Path) -> Callable[[], int]:
    words = ["dataset=real", f"dataset.studies={studies}", "dataset.questions=none.jsonl"]
    return lambda: run_verb(prepare_dataset, [*words, f"store={root}/store"])


@pytest.mark.parametrize("row", MANIFESTS, ids=[row[0] for row in MANIFESTS])
def test_a_manifest_that_cannot_be_read_is_named(row, tmp_path, capsys):
    _, content, said = row
    folder = tmp_path / "studies" / "S1"
    folder.mkdir(parents=True)
    (folder / "study.json").write_bytes(content)
    message = refused(prepared(folder.parent, tmp_path), rf"S1: study\.json: .*{said}", capsys, tmp_path)
    assert "Jane" not in message, "values of a manifest are not repeated"


@pytest.mark.parametrize("row", ENTRIES, ids=[row[0] for row in ENTRIES])
def test_an_entry_that_cannot_be_used_is_named(row, tmp_path, capsys):
    _, changes, said = row
    folder = tmp_path / "studies" / "S1"
    study(folder, volume(folder) | changes)
    refused(prepared(folder.parent, tmp_path), rf"S1: .*{said}", capsys, tmp_path)


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


def _manifest_is_a_folder(studies: Path) -> None:
    (studies / "S1" / "study.json").mkdir(parents=True)


FOLDERS: list[tuple[Callable[[Path], object], str]] = [
    (lambda studies: (studies / "S1").mkdir(parents=True), r"S1: study\.json: cannot be read \(No such file"),
    (_manifest_is_a_folder, r"S1: study\.json: cannot be read \(Is a directory\)"),
    (_same_id, r"S1: study\.json: study_id 'S' stands in the folders S1, S2; expected one folder a study_id"),
    (_loop, r"S1: loop: leads out of the study folder"),
    (_not_text, r"S\\xff: the folder's name is not UTF-8; .*; rename it"),
    (_link_to_nothing, r"S1: is a link that leads nowhere; expected a study folder"),
    (lambda studies: None, r"studies: cannot be read \(No such file or directory\); expected a folder of"),
    (lambda studies: studies.mkdir(), r"studies: holds no studies; expected a folder of study folders"),
    (lambda studies: studies.write_text(""), r"studies: cannot be read \(Not a directory\); expected"),
]


@pytest.mark.parametrize(("make", "said"), FOLDERS, ids=range(len(FOLDERS)))
def test_a_folder_that_cannot_be_used_is_named(make, said, tmp_path, capsys):
    make(tmp_path / "studies")
    refused(prepared(tmp_path / "studies", tmp_path), said, capsys, tmp_path)


def header(at: int, fmt: str, *values: float) -> Callable[[bytearray], bytes]:
    """A file with a part of its header overwritten."""

    def patched(whole: bytearray) -> bytes:
        struct.pack_into(fmt, whole, at, *values)
        return bytes(whole)

    return patched


def inside_out(whole: bytearray) -> bytes:
    struct.pack_into("<hh", whole, 252, 1, 0)  # qform alone
    struct.pack_into("<fff", whole, 256, 2.0, 2.0, 2.0)
    return bytes(whole)


def squeezed(*, cut: int = 0, flip: int = 0) -> Callable[[bytearray], bytes]:
    def made(whole: bytearray) -> bytes:
        stored = bytearray(gzip.compress(bytes(whole)))
        if flip:
            stored[flip] ^= 255
        return bytes(stored[:cut] if cut else stored)

    return made


def filled(array: np.ndarray) -> Callable[[bytearray], bytes]:
    def made(whole: bytearray) -> bytes:
        struct.pack_into("<hh", whole, 70, {"f": 64, "i": 4}[array.dtype.kind], 8 * array.itemsize)
        return bytes(whole[:352]) + array.tobytes(order="F")

    return made


NOISE = voxels().astype(np.float64)
HOLED = NOISE.copy()
HOLED[0, 0, 0] = np.nan

FILES: list[tuple[str, Callable[[bytearray], bytes], str]] = [
    ("empty", lambda whole: b"", rf"is not NIfTI: it starts with b''; {CONVERT}"),
    ("DICOM", lambda whole: b"DICM" * 200, rf"is not NIfTI: it starts with b'DICM'; {CONVERT}"),
    ("cut", lambda whole: bytes(whole[:400]), r"holds 400 bytes; expected 1072 .*; copy or export it again"),
    ("gzip cut", squeezed(cut=200), r"its gzip stream is truncated after \d+ of \d+ bytes"),
    ("gzip with a wrong CRC", squeezed(flip=-6), r"its gzip stream is damaged .*; copy it again"),
    ("5-D", header(40, "<6h", 5, 6, 5, 3, 2, 2), r"has 5 axes \(6, 5, 3, 2, 2\); expected \(i, j, Z\)"),
    ("no rows", header(40, "<4h", 3, 6, 0, 12), r"has 3 axes \(6, 0, 12\)"),
    (
        "terabytes",
        header(40, "<4h", 3, 32767, 32767, 32767),
        r"its shape is \(32767, 32767, 32767\); expected",
    ),
    ("unknown numbers", header(70, "<h", 999), rf"{DAMAGED} \(data code 999 not recognized\)"),
    ("colours", header(70, "<h", 128), r"voxels are of type RGB; expected .*; convert it to grey values"),
    ("offset infinite", header(108, "<f", float("inf")), DAMAGED),
    ("offset beyond", header(108, "<f", 1e30), r"begin at byte 10000000\d+; expected 352"),
    ("intercept infinite", header(112, "<ff", 1.0, float("inf")), DAMAGED),
    ("quaternion too long", inside_out, "its quaternion has length 3.464; expected at most 1"),
    ("affine NaN", header(280, "<f", float("nan")), r"its affine holds NaN or infinity; .*; re-export it"),
    ("one NaN", filled(HOLED), r"1 of 360 voxels are NaN or infinite; expected finite intensities"),
    ("constant", filled(np.full((6, 5, 12), 3, np.int16)), r"is constant \(3\); expected an image with"),
    ("too wide", filled(np.where(NOISE > 500, 1e308, -1e308)), r"too far apart or too near to scale"),
]


@pytest.mark.parametrize("row", FILES, ids=[row[0] for row in FILES])
def test_a_file_that_is_no_volume_is_named(row, tmp_path):
    name, broken, said = row
    folder = tmp_path / "S1"
    write_nifti(folder / "whole.nii", voxels())
    path = f"cine_sax.nii{'.gz' if 'gzip' in name else ''}"
    entry = volume(folder)
    (folder / path).write_bytes(broken(bytearray((folder / "whole.nii").read_bytes())))
    study(folder, entry | {"path": path, "sha256": sha256(folder / path)})
    (outcome,) = prepare_group(tmp_path / "store", "part-1.parquet", [folder], WINDOWS)
    assert outcome.record is None
    assert outcome.error.startswith(f"{path}: ")
    assert re.search(said, outcome.error), outcome.error
    assert snapshot(tmp_path / "store") == {}
