"""Orientation and size: all eight transforms, turned headers, the size of the heart, its systole."""

import json
import shutil

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.study.blood_pool import BloodAreas, cycle_of, size_doubts
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import Study, read_study
from cardiolens.study.nifti import VoxelLengths
from cardiolens.study.orientation import StudyOrientation, every_transform, frame_along


@pytest.fixture(scope="module")
def phantom(prepared_phantom):
    return read_study(prepared_phantom / "data" / "studies" / "PH-NORMAL")


def changed(study: Study, volume_id: str, **values) -> Study:
    volumes = tuple(
        volume.model_copy(update=values) if volume.volume_id == volume_id else volume
        for volume in study.manifest.volumes
    )
    return Study(study.folder, study.manifest.model_copy(update={"volumes": volumes}), "")


def doubts(study: Study, volume_id: str) -> tuple[str, ...]:
    return told(study, volume_id, StudyOrientation(study))


def told(study: Study, volume_id: str, orientation: StudyOrientation) -> tuple[str, ...]:
    (volume,) = (volume for volume in study.manifest.volumes if volume.volume_id == volume_id)
    return tuple(orientation.doubts(volume))


@given(st.floats(-179, 179))
def test_a_direction_of_the_heart_has_the_angle_that_it_is_made_of(degrees):
    frame = frame_along(None)
    direction = frame.toward(degrees)
    assert np.linalg.norm(direction) == pytest.approx(1)
    assert frame.angle(direction) == pytest.approx(degrees)


def test_one_transform_of_eight_passes_for_every_volume(phantom):
    orientation = StudyOrientation(phantom)
    for volume in phantom.manifest.volumes:
        name = volume.volume_id
        for transform in every_transform():
            turned = changed(phantom, name, display_transform=transform)
            if transform == volume.display_transform:
                assert told(turned, name, orientation) == ()
                continue
            with pytest.raises(InputError, match=rf"^{name}: display_transform is "):
                told(turned, name, orientation)
            looked_at = changed(turned, name, confirmed=("display",))
            assert "a person confirmed it" in told(looked_at, name, orientation)[0]


@pytest.mark.parametrize("view", ["4ch", "3ch", "2ch"])
def test_a_view_under_a_wrong_name_is_told(phantom, view):
    assert "by its affine its slices lie at" in doubts(changed(phantom, "lge_sax", view=view), "lge_sax")[0]


def test_a_stack_that_runs_the_other_way_is_told(phantom):
    turned = changed(phantom, "cine_sax", spatial_order="apex_to_base")
    assert "by its affine its slices run base_to_apex" in doubts(turned, "cine_sax")[0]


@pytest.mark.parametrize("affine", [None, np.diag([3.2, 3.2, 8, 1]), np.diag([-3.2, 3.2, 8, 1])])
def test_headers_that_tell_nothing_are_named(phantom, tmp_path, affine):
    folder = tmp_path / "S1"
    shutil.copytree(phantom.folder, folder)
    for volume in phantom.manifest.volumes:
        image = nib.load(folder / volume.path)
        nib.save(nib.Nifti1Image(np.asanyarray(image.dataobj), affine), folder / volume.path)
    blank = Study(folder, phantom.manifest, "")
    for volume in phantom.manifest.volumes:
        (doubt,) = doubts(blank, volume.volume_id)
        assert "display_transform was not checked; look at it" in doubt


def test_end_systole_is_found_in_the_blood(phantom):
    declared = next(v for v in phantom.manifest.volumes if v.volume_id == "cine_sax")
    left_open = phantom
    for volume in phantom.manifest.volumes:
        left_open = changed(left_open, volume.volume_id, ed_phase=None, es_phase=None)
    cycle = cycle_of(left_open)
    assert cycle is not None
    assert cycle.end_diastole == 0
    assert abs(cycle.end_systole - declared.es_phase) <= 1


def test_a_voxel_that_is_no_number_is_named_also_where_the_cycle_is_sought(cine_study):
    folder, tree = cine_study
    entry = tree["volumes"][0]
    image = nib.load(folder / entry["path"])
    values = np.asarray(image.dataobj).astype(np.float32)
    values[values.shape[0] // 2, values.shape[1] // 2, 0] = np.nan
    nib.save(nib.Nifti1Image(values, image.affine), folder / entry["path"])
    with pytest.raises(InputError, match=r"of \d+ voxels are NaN or infinite"):
        list(displayed_volumes(read(folder, tree), Windows()))


def test_what_was_found_is_told_with_the_volumes(phantom, tmp_path):
    folder = tmp_path / "S1"
    shutil.copytree(phantom.folder, folder)
    tree = json.loads((folder / "study.json").read_text())
    for volume in tree["volumes"]:
        for key in ("ed_phase", "es_phase", "t_on", "t_peak"):
            volume.pop(key, None)
    (folder / "study.json").write_text(json.dumps(tree))
    told = {v.row["volume_id"]: v for v in displayed_volumes(read_study(folder), Windows())}
    assert all(told[name].found for name in ("cine_sax", "cine_4ch", "cine_3ch", "cine_2ch", "perf_sax"))
    assert not any(volume.warnings for volume in told.values())
    perfusion = next(v for v in phantom.manifest.volumes if v.volume_id == "perf_sax")
    assert abs(told["perf_sax"].row["t_on"] - perfusion.t_on) <= 2
    assert abs(told["perf_sax"].row["t_peak"] - perfusion.t_peak) <= 2


@pytest.fixture
def cine_study(prepared_phantom, tmp_path):
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


def test_preparing_names_a_ventricle_of_no_size(cine_study):
    folder, tree = cine_study
    entry = tree["volumes"][0]
    opened = read(folder, tree)
    cycle = cycle_of(opened)
    assert cycle is not None
    assert not list(size_doubts(opened.manifest.volumes[0], cycle))
    small = BloodAreas(cycle.by_slice_and_phase / cycle.by_slice_and_phase.max() * np.pi * (5 / 3.2) ** 2)
    (doubt,) = size_doubts(opened.manifest.volumes[0], small)
    assert "is 10 mm wide; expected 20 to 110 mm" in doubt
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


def test_preparing_believes_neither_place_until_a_person_does(cine_study):
    folder, tree = cine_study
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
