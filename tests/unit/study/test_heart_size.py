"""A wrong voxel size shows in the size of the heart, and in a header that contradicts itself."""

import json
import shutil
from dataclasses import replace

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.study.blood_pool import BloodAreas, Cycle, cycle_of, size_doubts
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import read_study
from cardiolens.study.nifti import VoxelLengths


@pytest.fixture
def study(prepared_phantom, tmp_path):
    """A study of one short-axis cine, with everything open that can be."""
    folder = tmp_path / "S1"
    folder.mkdir()
    source = prepared_phantom / "data" / "studies" / "PH-NORMAL"
    tree = json.loads((source / "study.json").read_text())
    [entry] = [volume for volume in tree["volumes"] if volume["volume_id"] == "cine_sax"]
    shutil.copy(source / entry["path"], folder)
    entry = {k: v for k, v in entry.items() if k not in ("mask", "sha256", "es_phase", "ed_phase")}
    return folder, tree | {"study_id": "S1", "volumes": [entry]}


def read(folder, tree):
    (folder / "study.json").write_text(json.dumps(tree))
    return read_study(folder)


def test_preparing_names_a_ventricle_of_no_size(study):
    folder, tree = study
    entry = tree["volumes"][0]
    opened = read(folder, tree)
    cycle = cycle_of(opened)
    assert isinstance(cycle, Cycle)
    assert size_doubts(opened.manifest.volumes[0], cycle) == ()
    small = replace(cycle, cavity_mm=10.0)
    assert "is 10 mm wide; expected 20 to 110 mm" in size_doubts(opened.manifest.volumes[0], small)[0]
    assert entry["spacing_mm"][0] == 3.2


def rewritten(folder, name: str, change) -> None:
    path = folder / name
    image = nib.load(path)
    raw = bytearray(nib.Nifti1Image(np.asarray(image.dataobj), image.affine, image.header).to_bytes())
    header = nib.Nifti1Header(bytes(raw[:348]))
    change(header)
    raw[:348] = header.binaryblock
    path.unlink()
    (folder / name.removesuffix(".gz")).write_bytes(bytes(raw))


def unit_columns(header) -> None:
    for row in ("srow_x", "srow_y", "srow_z"):
        header[row][:3] /= np.array([3.2, 3.2, 9.35556])


def test_preparing_believes_neither_place_until_a_person_does(study):
    folder, tree = study
    entry = tree["volumes"][0]
    rewritten(folder, entry["path"], unit_columns)
    entry["path"] = entry["path"].removesuffix(".gz")
    with pytest.raises(InputError, match=r"contradicts itself \(sform 1 x 1 x .* pixdim 3\.2 x 3\.2"):
        list(displayed_volumes(read(folder, tree), Windows()))
    stated = {**entry, "confirmed": ["spacing"]}
    assert list(displayed_volumes(read(folder, {**tree, "volumes": [stated]}), Windows()))
    wrong = {**stated, "spacing_mm": [2.0, 2.0, 9.0]}
    with pytest.raises(InputError, match=r"study\.json says 2 x 2 x 9 mm"):
        list(displayed_volumes(read(folder, {**tree, "volumes": [wrong]}), Windows()))


def test_one_voxel_measures_nothing_and_units_are_a_default():
    single = (False, False, True)
    assert not VoxelLengths((1.4, 1.4, 1.0), (1.4, 1.4, 8.0), single=single).contradicted
    assert VoxelLengths((1.0, 1.0, 1.0), (1.4, 1.4, 8.0)).proposal == (1.4, 1.4, 8.0)
    assert VoxelLengths((1.4, 1.4, 8.0), (1.0, 1.0, 1.0)).proposal == (1.4, 1.4, 8.0)
    assert VoxelLengths((1.4, 1.4, 8.0), (2.0, 2.0, 8.0)).proposal == (1.4, 1.4, 8.0)


def areas(systole: int, n_phases: int = 12, n_slices: int = 8) -> np.ndarray:
    """Slices of unlike size that contract to 60 % in one phase, by 4 % or more from the next."""
    phase = np.abs(np.arange(n_phases) - systole)
    left = np.minimum(0.6 + 0.04 * phase, 1.0)
    left[0] = 1.0
    return np.linspace(2500, 600, n_slices)[:, None] * left


@given(st.integers(2, 10), st.integers(0, 3), st.integers(1, 11), st.floats(0.05, 0.9))
def test_one_slice_that_moved_does_not_decide(systole: int, slice_: int, phase: int, left: float) -> None:
    found = areas(systole)
    found[2 + slice_, phase] *= left
    blood = BloodAreas(found)
    assert (blood.end_systole, blood.tied) == (systole, ())


@given(st.integers(2, 9), st.floats(0, 0.004))
def test_a_tie_is_told(systole: int, more: float) -> None:
    found = areas(systole)
    found[:, systole + 1] = found[:, systole] * (1 + more)
    blood = BloodAreas(found)
    assert {blood.end_systole, *blood.tied} == {systole, systole + 1}
