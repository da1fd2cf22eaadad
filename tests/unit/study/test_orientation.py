"""Every one of the eight transforms, of every volume of a phantom study, and turned headers."""

import json
import shutil

import nibabel as nib
import numpy as np
import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.study.blood_pool import cycle_of
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import Study, read_study
from cardiolens.study.orientation import StudyOrientation, every_transform


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
