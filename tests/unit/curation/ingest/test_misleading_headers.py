"""Headers that lie on weighting, units, UIDs, positions or polarity: what is taken is right, or it waits."""

import struct
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
from pydicom.data import get_testdata_file

from cardiolens.base import disk
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.config.dataset import Windows
from cardiolens.curation.ingest import import_run
from cardiolens.curation.ingest.import_run import ingest
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import read_study
from tests.unit.curation.ingest import nifti_exports
from tests.unit.curation.ingest.exports import (
    CINE,
    LGE,
    NORMAL,
    SHORT_AXIS,
    builds,
    header,
    healthy,
    proposals,
    rejects,
    save,
    series,
)
from tests.unit.curation.ingest.test_bad_nifti import AFFINE, VOXELS

pytestmark = pytest.mark.full

CORNERS = np.array([k * 8.0 * -NORMAL for k in range(10)])


def rings(seed: int = 3, n: int = 10) -> np.ndarray:
    """A still stack of `n` slices, one phase: a ring that grows smaller, with noise."""
    rng = np.random.default_rng(seed)
    rows, columns = np.indices((32, 32)) - 15.5
    stack = [np.where(abs(np.hypot(rows, columns) - 10 + 0.6 * k) < 2, 900, 100) + rows for k in range(n)]
    return (np.array(stack) + rng.integers(0, 50, (n, 32, 32)))[:, None]


def short_axis(folder: Path, number: int, description: str, frames: np.ndarray, **elements: Any) -> None:
    told = {"ImageOrientationPatient": SHORT_AXIS, "SeriesDescription": description}
    corners = elements.pop("corners", CORNERS)
    series(folder, frames, corners, number, **told | elements)


def still(folder: Path, name: str, affine: np.ndarray = AFFINE, seed: int = 3) -> Path:
    """Write a still stack as NIfTI."""
    voxels = rings(seed, 6)[:, 0].transpose(2, 1, 0).astype(np.int16)
    return nifti_exports.save(folder / "p1" / name, voxels, affine)


def cine(folder: Path, affine: np.ndarray = AFFINE) -> Path:
    return nifti_exports.save(folder / "p1" / "cine_sax.nii", VOXELS, affine, step_s=0.1)


class Import:
    """What an import of `<folder>/in` made."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.out = folder / "out"
        self.rc = ingest(IngestSpec(source=folder / "in", out=self.out, key=folder / "key", **options))
        self.rejects, self.builds, self.proposals = rejects(self.out), builds(self.out), proposals(self.out)
        self.reasons = {line["reason"] for line in self.rejects}

    @property
    def taken(self) -> dict[str, dict[str, Any]]:
        return {each["volume_id"]: each for each in self.proposals if each["status"] == "taken"}

    @property
    def waiting(self) -> dict[str, dict[str, Any]]:
        return {each["volume_id"]: each for each in self.proposals if each["status"] == "waits"}

    @property
    def prepared(self) -> set[str]:
        """The volumes that `prepare` displays."""
        (folder,) = self.out.glob("studies/*")
        return {str(each.row["volume_id"]) for each in displayed_volumes(read_study(folder), Windows())}

    def values(self, volume_id: str) -> np.ndarray:
        """Intensities (slice, phase, row, column) of a volume."""
        (path,) = self.out.glob(f"*/*/*{volume_id}.nii")
        values = np.asarray(nib.load(path).dataobj)
        return (values[..., None] if values.ndim == 3 else values).transpose(2, 3, 1, 0)


# Weighting

NOT_T2 = {
    "T1 by echo time": ("sax db", {"ScanningSequence": "SE", "EchoTime": 6.8, "RepetitionTime": 700.0}),
    "T1 by name": ("t1w dark blood sax", {"ScanningSequence": ["SE", "IR"]}),
    "an echo of 12 ms": ("tse sax", {"ScanningSequence": "SE", "EchoTime": 12.0}),
}


@pytest.mark.parametrize("name", NOT_T2)
def test_a_spin_echo_is_t2_weighted_only_by_its_echo_time_or_name(tmp_path, name):
    description, elements = NOT_T2[name]
    healthy(tmp_path / "in")
    short_axis(tmp_path / "in", 700, "T2_STIR_sax", rings(), ScanningSequence=["SE", "IR"], EchoTime=64.0)
    short_axis(tmp_path / "in", 800, description, rings(9), **elements)
    done = Import(tmp_path)
    assert done.taken["t2_sax"]["series"] == [700]
    assert "repeats_left_out" not in done.taken["t2_sax"]["flags"]
    assert {line["reason"] for line in done.rejects} == {"other_sequence"}


@pytest.mark.parametrize("elements", [{"EchoTime": 30.0}, {}])
def test_a_name_tells_t2_where_the_echo_time_does_not_refute_it(tmp_path, elements):
    short_axis(tmp_path / "in", 700, "STIR sax", rings(), **{"ScanningSequence": ["SE", "IR"]} | elements)
    assert set(Import(tmp_path).taken) == {"t2_sax"}


def test_a_t2_name_on_a_short_echo_waits(tmp_path):
    short_axis(tmp_path / "in", 700, "T2 tse sax", rings(), ScanningSequence="SE", EchoTime=8.0)
    done = Import(tmp_path)
    assert not done.taken
    assert "witnesses_disagree" in done.waiting["t2_sax"]["flags"]


# One UID, one position


@pytest.mark.parametrize("alike", [False, True])
def test_images_that_share_a_uid_are_all_taken_and_flagged(tmp_path, alike):
    healthy(tmp_path / "in")
    frames = np.repeat(rings()[:1], 10, axis=0) if alike else rings()
    short_axis(tmp_path / "in", 700, "lge_sax", frames, SOPInstanceUID="1.2.3.99", **LGE)
    found = Import(tmp_path).taken["lge_sax"]
    assert found["slices"] == 10
    assert "repeats_left_out" in found["flags"]


def test_a_copy_is_left_out_however_it_is_stored_and_a_damaged_one_costs_nothing(tmp_path):
    """Real files: one image in seven encodings, and the same image with too few pixels."""
    kinds = ["", "_RLE", "_bigendian", "_expb", "_implicit", "_jp2klossless", "_padded"]
    for kind in kinds:
        content = Path(str(get_testdata_file(f"MR_small{kind}.dcm"))).read_bytes()
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"z{kind}").write_bytes(content)
    (tmp_path / "in" / "a_truncated").write_bytes(
        Path(str(get_testdata_file("MR_truncated.dcm"))).read_bytes()
    )
    done = Import(tmp_path)
    assert sorted(line["reason"] for line in done.rejects) == [
        "broken_file", *["duplicate"] * (len(kinds) - 1), "other_view"
    ]  # fmt: skip
    assert len(done.proposals) == 1


@pytest.mark.parametrize("told", [LGE, CINE | {"CardiacNumberOfImages": 4}])
def test_images_of_one_position_wait(tmp_path, told):
    for k, frame in enumerate(rings()[:, 0]):
        timed = {"SliceLocation": 8.0 * k} if told is LGE else {"TriggerTime": 70.0 * k}
        one_image(tmp_path / "in", k, frame, **told | timed)
    done = Import(tmp_path)
    assert not done.taken
    (found,) = done.waiting.values()
    assert "slices_contradicted" in found["flags"]


def one_image(folder: Path, number: int, frame: np.ndarray, **elements: Any) -> None:
    """Write an image at the position of all others, unless it is given."""
    told = {"ImageOrientationPatient": SHORT_AXIS, "BitsStored": 16, "HighBit": 15} | elements
    name = "lge_sax" if "InversionTime" in elements else "cine_sax"
    pixels = np.ascontiguousarray(frame).astype(np.uint16).tobytes()
    dataset = header(SeriesDescription=name, InstanceNumber=number + 1, PixelData=pixels, **told)
    save(dataset, folder / f"IM{number}")


# Rivals


@pytest.mark.parametrize(("name", "phases"), [("cine_sax", 2), ("series 6", 2), ("cine_sax", 8)])
def test_what_is_named_and_has_the_phases_is_taken_before_more_slices(tmp_path, name, phases):
    healthy(tmp_path / "in", SeriesDescription=name)
    stack = [rings(seed, n=10) for seed in range(phases)]
    frames = np.repeat(np.concatenate(stack, axis=1), 3, axis=0) + np.arange(30)[:, None, None, None]
    corners = np.arange(30)[:, None] * 2.6 * -NORMAL
    elements = CINE | {"SliceThickness": 2.6, "corners": corners}
    short_axis(tmp_path / "in", 950, "series 7", frames, **elements)
    done = Import(tmp_path)
    found = done.taken["cine_sax"]
    assert (found["series"], found["slices"], found["phases"]) == ([900], 6, 8)
    assert "incomplete" in found["flags"]
    assert [line["reason"] for line in done.rejects] == ["repeat"] * 30 * phases


# Shear


def test_slices_that_drift_in_plane_are_prepared(tmp_path):
    healthy(tmp_path / "in")
    along = np.array(SHORT_AXIS[:3])
    corners = CORNERS + np.arange(10)[:, None] * 2.0 * along
    short_axis(tmp_path / "in", 700, "lge_sax", rings(), corners=corners, **LGE)
    done = Import(tmp_path)
    assert done.prepared == {"cine_sax", "lge_sax"}
    assert done.taken["lge_sax"]["entry"]["spacing_mm"] == [2.0, 2.0, 8.0]
    (path,) = done.out.glob("studies/*/lge_sax.nii")
    assert nib.load(path).header["qform_code"] == 0, "a qform holds no shear"


@pytest.mark.parametrize("qform", [False, True])
def test_a_sheared_sform_is_prepared(tmp_path, qform):
    affine = AFFINE.copy()
    affine[:3, 2] += affine[:3, 0] / 2 * 2.0
    cine(tmp_path / "in")
    path = still(tmp_path / "in", "lge_sax.nii", affine)
    if qform:  # which holds no shear
        image = nib.load(path, mmap=False)
        image.set_qform(affine, 1)
        nib.save(image, path)
    assert Import(tmp_path).prepared == {"cine_sax", "lge_sax"}


def test_a_volume_that_prepare_refuses_waits_and_costs_the_others_nothing(tmp_path, monkeypatch):
    """A still stack that ends as it began looks like a cycle to `prepare`."""
    published, rename = [], disk.rename

    def watched(source: Path, target: Path) -> None:
        published.extend(path.name for path in source.glob("*_sax.nii"))
        rename(source, target)

    monkeypatch.setattr(disk, "rename", watched)
    monkeypatch.setattr(import_run, "spread", lambda function, items, **_: map(function, items))
    healthy(tmp_path / "in")
    rows, columns = np.indices((32, 32)) - 15.5
    sizes = 9 - 3 * np.sin(np.pi * np.arange(10) / 9.5) ** 2
    discs = np.array([np.where(np.hypot(rows, columns) < size, 900, 100) + rows for size in sizes])
    short_axis(tmp_path / "in", 700, "lge_sax", discs[:, None], **LGE)
    done = Import(tmp_path)
    assert done.prepared == {"cine_sax"}
    assert published == ["cine_sax.nii"], "a kill leaves no study behind that prepare refuses"
    (message,) = {line["message"] for line in done.rejects if line["reason"] == "contradicted"}
    assert "slices_look_like_time" in message


# NIfTI headers


@pytest.mark.parametrize(("unit", "factor"), [(3, 1.0), (2, 0.1), (2, 1000.0), (0, 0.001)])
def test_lengths_of_no_heart_wait_with_the_likely_unit(tmp_path, unit, factor):
    affine = AFFINE.copy()
    affine[:3, :3] *= factor
    path = cine(tmp_path / "in", affine)
    content = bytearray(path.read_bytes())
    content[123] = content[123] & ~7 | unit
    path.write_bytes(content)
    done = Import(tmp_path)
    found = done.waiting["cine_sax"]
    assert (found["slices"], found["entry"]["spacing_mm"]) == (6, [2.0, 2.0, 8.0])
    assert "spacing_unsettled" in found["flags"]
    (message,) = {line["message"] for line in done.rejects}
    likely = {0.1: "cm", 0.001: "m", 1000.0: "micron"}.get(factor, "mm")
    assert f"in {likely} they would have 2 x 2 x 8 mm" in message


def test_nifti_2_is_read(tmp_path):
    image = nib.Nifti2Image(VOXELS, AFFINE)
    image.header.set_xyzt_units("mm", "sec")
    image.header["pixdim"][4] = 0.1
    (tmp_path / "in" / "p1").mkdir(parents=True)
    nib.save(image, tmp_path / "in" / "p1" / "cine_sax.nii")
    assert Import(tmp_path).prepared == {"cine_sax"}


@pytest.mark.parametrize(("excess", "read"), [(3.9e-7, True), (1e-4, True), (0.5, False)])
def test_a_quaternion_is_read_unless_it_is_no_rotation(tmp_path, excess, read):
    cine(tmp_path / "in")
    path = still(tmp_path / "in", "lge_sax.nii")
    image = nib.load(path, mmap=False)
    image.set_qform(AFFINE, 1)
    image.set_sform(None, 0)
    nib.save(image, path)
    content = bytearray(path.read_bytes())
    quaternion = np.array(struct.unpack("<3f", content[256:268]))
    quaternion *= np.sqrt(1 + excess) / np.linalg.norm(quaternion)
    content[256:268] = struct.pack("<3f", *quaternion)
    path.write_bytes(content)
    done = Import(tmp_path)
    assert done.prepared == {"cine_sax"} | ({"lge_sax"} if read else set())
    messages = [line["message"] for line in done.rejects]
    assert all("quaternion has length 1.225" in message for message in messages)
    assert bool(messages) != read


def test_a_stack_of_unclear_axes_and_no_sequence_costs_the_others_nothing(tmp_path):
    cine(tmp_path / "in")
    still(tmp_path / "in", "lge_sax.nii")
    noise = np.random.default_rng(1).integers(0, 999, (20, 20, 5, 4)).astype(np.int16)
    nifti_exports.save(tmp_path / "in" / "p1" / "small.nii", noise, AFFINE)
    done = Import(tmp_path, subject="")
    assert set(done.taken) == {"cine_sax", "lge_sax"}
    assert done.reasons == {"other_sequence"}


def test_a_field_of_vectors_is_no_image(tmp_path):
    cine(tmp_path / "in")
    field = np.random.default_rng(1).normal(size=(32, 32, 9, 3)).astype(np.float32)
    nifti_exports.save(tmp_path / "in" / "p1" / "warp.nii", field, AFFINE, intent_code=2006)
    assert Import(tmp_path).reasons == {"broken_file"}


# Files


def test_a_directory_of_a_disc_is_named_under_any_name(tmp_path):
    """A real file."""
    healthy(tmp_path / "in")
    content = Path(str(get_testdata_file("dicomdirtests/DICOMDIR"))).read_bytes()
    (tmp_path / "in" / "index-copy").write_bytes(content)
    assert Import(tmp_path).reasons == {"no_image"}
