"""A wrong voxel size shows in the size of the heart, and in a header that contradicts itself."""

import json
import shutil
from dataclasses import replace

import nibabel as nib
import numpy as np
import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.study.blood_pool import Cycle, cycle_of, has_heart_size, size_doubts
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


@pytest.mark.parametrize(("millimetres", "fits"), [(10, False), (45, True), (75, True), (200, False)])
def test_a_ring_of_10_or_200_mm_is_no_heart(millimetres, fits):
    assert has_heart_size(millimetres) is fits


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
