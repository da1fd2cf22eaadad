"""Malformed and strange NIfTI: each file is left out with a named reason, and costs the others nothing."""

import gzip
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.import_run import ingest
from tests.unit.curation.ingest.exports import NORMAL, SHORT_AXIS, contracting, proposals
from tests.unit.curation.ingest.nifti_exports import save

pytestmark = pytest.mark.full

AFFINE = np.eye(4)
AFFINE[:3, :3] = np.diag([-1.0, -1.0, 1.0]) @ np.array([SHORT_AXIS[:3], SHORT_AXIS[3:], -NORMAL]).T
AFFINE[:3, :3] *= [2.0, 2.0, 8.0]


VOXELS = contracting().transpose(3, 2, 0, 1).astype(np.int16)
OTHER = VOXELS[::-1] + np.arange(32, dtype=np.int16)[:, None, None, None]
Case = Callable[[Path], None]


def whole(**changes: object) -> bytes:
    """Bytes of a good file, some fields of whose header are overwritten as they are."""
    image = nib.Nifti1Image(OTHER, AFFINE)
    image.header.set_xyzt_units("mm", "sec")
    image.header["pixdim"][4] = 0.1
    content = bytearray(image.to_bytes())
    for name, value in changes.items():
        at, form = {
            "datatype": (70, "<h"), "bitpix": (72, "<h"), "vox_offset": (108, "<f"), "slope": (112, "<f"),
            "ndim": (40, "<h"), "x": (42, "<h"), "y": (44, "<h"), "z": (46, "<h"), "t": (48, "<h"),
            "sizeof": (0, "<i"), "row": (280, "<f"),
        }[name]  # fmt: skip
        content[at : at + struct.calcsize(form)] = struct.pack(form, value)
    return bytes(content)


def raw(content: bytes, name: str = "case.nii") -> Case:
    return lambda folder: (folder / name).write_bytes(content) and None


def voxels(values: np.ndarray, affine: np.ndarray = AFFINE, name: str = "case.nii.gz") -> Case:
    return lambda folder: save(folder / name, values, affine) and None


def with_affine(change: Callable[[np.ndarray], None]) -> Case:
    affine = AFFINE.copy()
    change(affine)
    return voxels(OTHER, affine)


def column(index: int, values: object) -> Case:
    return with_affine(lambda affine: affine.__setitem__((slice(0, 3), index), values))


def missing(kind: type) -> np.ndarray:
    values = OTHER.astype(np.float32)
    values[3, 3, 3, 3] = kind
    return values


HUGE = {"ndim": 4, "x": 32000, "y": 32000, "z": 32000, "t": 2}

CASES: dict[str, tuple[Case, str]] = {
    "gz cut in two": (raw(gzip.compress(whole())[:800], "case.nii.gz"), "broken_file"),
    "gz with a wrong checksum": (raw(gzip.compress(whole())[:-8] + b"\0" * 8, "case.nii.gz"), "broken_file"),
    "cut in two": (raw(whole()[:40000]), "broken_file"),
    "text": (raw(b"patient: none\n" * 100), "broken_file"),
    "no voxels": (raw(whole(x=0)), "no_image"),
    "an absurd number of axes": (raw(whole(ndim=99)), "bad_shape"),
    "a shape of terabytes in gz": (raw(gzip.compress(whole(**HUGE)), "case.nii.gz"), "bad_shape"),
    "a shape larger than its file": (raw(whole(x=320)), "broken_file"),
    "voxels far behind the header": (raw(whole(vox_offset=3e9)), "broken_file"),
    "an unknown type": (raw(whole(datatype=999)), "broken_file"),
    "complex": (voxels(OTHER.astype(np.complex64)), "broken_file"),
    "NaN": (voxels(missing(np.nan)), "broken_file"),
    "five axes": (voxels(np.repeat(OTHER[..., None], 3, axis=4)), "bad_shape"),
    "a small matrix": (voxels(OTHER[:8, :8]), "bad_shape"),
    "one grey value": (voxels(np.full((32, 32, 6), 7, np.int16), name="lge_4ch.nii"), "broken_file"),
    "a mask by its values": (voxels((OTHER > 500).astype(np.uint8)), "mask"),
    "a mask by its name": (raw(whole(), "case_gt.nii"), "mask"),
    "header and voxels apart": (raw(whole()[:348], "case.hdr"), "bad_shape"),
    "a pair's mark": (raw(whole().replace(b"n+1\0", b"ni1\0")), "bad_shape"),
    "an affine with equal directions": (column(1, AFFINE[:3, 0]), "no_position"),
    "slices in their plane": (column(2, AFFINE[:3, 0] * 4), "no_position"),
    "NaN in the affine": (raw(whole(row=float("nan"))), "broken_file"),
    "ten kilometres away": (column(3, 1e7), "no_position"),
    "a sidecar alone": (raw(b"{}", "case.json"), "no_image"),
    "time first": (voxels(VOXELS.transpose(3, 0, 1, 2)), "bad_shape"),
    "flat": (voxels(np.tile(OTHER.reshape(32, 32, -1), 3)[:, :, :40], AFFINE), "bad_shape"),
    "a sidecar of a number beyond floats": (
        raw(b'{"EchoTime": 1' + b"0" * 400 + b"}", "cine_sax.json"),
        "broken_file",
    ),
    "a sidecar that is no JSON": (raw(b"{", "cine_sax.json"), "broken_file"),
    "a sidecar nested too deeply": (raw(b"[" * 100_000, "cine_sax.json"), "broken_file"),
    "a link": (lambda folder: os.symlink("/etc/passwd", folder / "case.nii"), "unreadable"),
}  # fmt: skip


@pytest.fixture(scope="module")
def imported(tmp_path_factory) -> tuple[Path, dict[str, str], list[dict]]:
    """A patient for each case, with a good cine and what cannot be used: output, study ids, rejects."""
    root = tmp_path_factory.mktemp("bad")
    numbered = {f"p{number:02d}": case for number, case in enumerate([*CASES, "none"])}
    for folder, case in numbered.items():
        save(root / "in" / folder / "cine_sax.nii.gz", VOXELS, AFFINE, step_s=0.1)
        if case in CASES:
            CASES[case][0](root / "in" / folder)
    (root / "in" / "dataset_description.json").write_text('{"Name": "x"}')
    ingest(IngestSpec(source=root / "in", out=root / "out", links=root / "links"))
    links = [json.loads(line) for line in (root / "links").read_text().splitlines()]
    names = {line["file"]: line["name"] for line in links if "file" in line}
    studies = {numbered[line["patient"]]: line["study_id"] for line in links if "patient" in line}
    text = (root / "out" / "rejects.jsonl").read_text()
    assert "case" not in text
    rejects = [json.loads(line) for line in text.splitlines()]
    rejects = [line | {"case": numbered.get(names[line["file"]].split("/")[0])} for line in rejects]
    return root / "out", studies, rejects


def taken(out: Path, study_id: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "studies" / study_id).glob("*.nii")}


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_used_is_named_and_costs_the_others_nothing(imported, name):
    out, studies, rejects = imported
    assert {line["reason"] for line in rejects if line["case"] == name} == {CASES[name][1]}
    assert taken(out, studies[name]) == taken(out, studies["none"])


def test_an_image_without_a_sidecar_and_a_dataset_description_are_no_fault(imported):
    out, studies, rejects = imported
    assert taken(out, studies["none"]).keys() == {"cine_sax.nii"}
    assert [line["reason"] for line in rejects if line["case"] in ("none", None)] == ["no_image"]


def test_a_still_stack_that_ends_as_it_began_or_reaches_too_far_is_not_taken(tmp_path):
    """Phases on the third axis: of one slice, and of slices one after the other."""
    cycle = VOXELS[:, :, 2].astype(np.int16)
    save(tmp_path / "in" / "p1" / "lge_sax.nii.gz", cycle, AFFINE)
    far = np.random.default_rng(1).integers(0, 900, (48, 48, 40)).astype(np.int16)
    save(tmp_path / "in" / "p1" / "t2_sax.nii.gz", far, AFFINE)
    ingest(IngestSpec(source=tmp_path / "in", out=tmp_path / "out"))
    [proposal] = proposals(tmp_path / "out")
    assert (proposal["status"], proposal["reason"]) == ("waits", "contradicted")
    assert '"bad_shape"' in (tmp_path / "out" / "rejects.jsonl").read_text()
