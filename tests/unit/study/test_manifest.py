"""Manifests of studies: defaults, layouts, and what is refused by name."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_folders import study, volume

from cardiolens.base.errors import InputError
from cardiolens.study.manifest import read_study
from cardiolens.study.structure import Layout, resolve
from cardiolens.study.volume import small
from cardiolens.study.volume_manifest import VolumeManifest


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "S1"


def entry(**changes):
    """A manifest entry without a file behind it: ten slices of 25 phases."""
    return {
        "volume_id": "cine_sax",
        "sequence": "cine",
        "view": "sax",
        "path": "cine_sax.nii.gz",
        "shape": [6, 5, 250],
        "spacing_mm": [1, 1, 10],
        "layout": {"order": "slice_major", "n_slices": 10, "n_phases": 25},
        "sha256": "0" * 64,
    } | changes


def parsed(**changes):
    return VolumeManifest.model_validate_json(json.dumps(entry(**changes)))


def grid(n_slices, n_phases):
    layout = {"order": "slice_major", "n_slices": n_slices, "n_phases": n_phases}
    return {"shape": [6, 5, n_slices * n_phases], "layout": layout}


@pytest.mark.parametrize(
    ("changes", "timing"),
    [
        ({}, (0, 9, (1, 5, 8))),
        (grid(2, 25), (0, 9, (0, 1))),
        (grid(2, 20) | {"ed_phase": 19}, (19, 6, (0, 1))),
        (grid(2, 1), (0, 0, (0, 1))),
        (grid(1, 25), (0, 9, (0,))),
        (grid(9, 25), (0, 9, (1, 4, 7))),
        (grid(12, 25), (0, 9, (2, 6, 10))),
        ({"ed_phase": 3, "es_phase": 2, "key_layers": [0, 4, 9]}, (3, 2, (0, 4, 9))),
    ],
)
def test_times_and_layers_are_declared_or_follow_from_the_grid(changes, timing):
    assert parsed(**changes).timing() == timing


def test_what_is_left_out_is_as_the_specification_says():
    manifest = parsed()
    assert (manifest.spatial_order, manifest.layout_source) == ("unknown", "declared")
    assert not any(manifest.display_transform.model_dump().values())


def test_static_sequences_need_no_layout():
    lge = {"volume_id": "lge_sax", "sequence": "lge", "shape": [6, 5, 7]}
    assert parsed(**lge, layout={}).declared_layout() == Layout(7, 1)
    with pytest.raises(ValueError, match="layout_unresolved"):
        parsed(layout={})


def test_a_singleton_fourth_axis_is_dropped():
    assert parsed(shape=[6, 5, 250, 1]).stored_shape == (6, 5, 250)
    assert parsed(shape=[6, 5, 10, 25]).declared_layout() == Layout(10, 25, phase_major=True)


def test_only_a_short_axis_can_run_from_the_apex():
    assert parsed(spatial_order="apex_to_base").apex_first
    assert not parsed(spatial_order="unknown").apex_first
    assert not parsed(volume_id="cine_4ch", view="4ch", spatial_order="apex_to_base").apex_first


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"key_layers": [8, 5, 1]},
            "volumes.0: key_layers is [8, 5, 1]; expected 3 ascending canonical ranks in 0..9",
        ),
        (
            {"t_on": 1, "t_peak": 2},
            "volumes.0: t_on or t_peak of a cine volume; expected with perfusion only",
        ),
        (
            {"spatial_order": "up"},
            "volumes.0: spatial_order is 'up'; expected one of base_to_apex, apex_to_base, unknown; correct",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_wrong_volume_is_named_with_what_is_legal(folder, changes, message):
    study(folder, entry(**changes))
    with pytest.raises(InputError) as caught:
        read_study(folder)
    assert str(caught.value).startswith(f"study.json: {message}")
    assert str(caught.value).endswith("; correct study.json")


@pytest.mark.parametrize(
    ("t_on", "t_peak", "legal"),
    [(8, 15, True), (8, 8, True), (8, None, False), (None, 8, False), (9, 8, False), (8, 25, False)],
)
def test_first_pass_times_come_together_and_in_order(t_on, t_peak, legal):
    changes = {"volume_id": "perf_sax", "sequence": "perfusion", "t_on": t_on, "t_peak": t_peak}
    if legal:
        assert parsed(**changes).t_peak == t_peak
    else:
        with pytest.raises(ValueError, match=r"t_on is|t_peak is"):
            parsed(**changes)


@pytest.mark.parametrize("study_id", ["", "..", "a/b", "a\\b", "a\nb", "x" * 129])
def test_a_study_id_that_could_leave_a_folder_is_refused(folder, study_id):
    study(folder, entry(), study_id=study_id)
    with pytest.raises(InputError, match=r"^study\.json: study_id: expected 1 to 128 printable characters"):
        read_study(folder)


def test_two_volumes_of_one_view_are_refused(folder):
    study(folder, entry(), entry())
    with pytest.raises(
        InputError, match=r"^study\.json: .*2 volumes of view 'cine_sax'; expected one per view"
    ):
        read_study(folder)


def test_a_manifest_may_name_subgroups(folder):
    named = {"sex": "female", "age_band": "40-49", "vendor": "A", "field_tesla": 1.5, "site": "north"}
    study(folder, **named)
    told = read_study(folder).manifest.subgroups
    expected = {"sex": "female", "age band": "40-49", "vendor": "A", "site": "north"}
    assert told == expected | {"field strength": "1.5 T"}
    study(folder)
    assert read_study(folder).manifest.subgroups == {}


def test_links_within_the_folder_and_to_the_folder_are_followed(folder):
    study(folder, volume(folder, path="original.nii.gz") | {"path": "cine_sax.nii.gz"})
    (folder / "cine_sax.nii.gz").symlink_to("original.nii.gz")
    folder.with_name("alias").symlink_to(folder)
    assert read_study(folder.with_name("alias")).files() == ("cine_sax.nii.gz",)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sex": "f"}, "sex"),
        ({"age_band": "49-40"}, "spans fewer than 5 years"),
        ({"field_tesla": 0}, "field_tesla"),
        ({"site": "a\nb"}, "site"),
    ],
)
def test_a_subgroup_that_is_none_is_refused(folder, given, said):
    study(folder, **given)
    with pytest.raises(InputError, match=said):
        read_study(folder)


GRIDS = st.tuples(st.integers(1, 14), st.integers(1, 30))


@given(GRIDS, st.booleans())
def test_each_stored_frame_stands_at_its_slice_and_phase(size, phase_major):
    n_slices, n_phases = size
    grid = Layout(*size, phase_major=phase_major).grid(np.arange(n_slices * n_phases))
    assert grid.shape == size
    for (rank, phase), stored in np.ndenumerate(grid):
        found = divmod(stored, n_slices)[::-1] if phase_major else divmod(stored, n_phases)
        assert found == (rank, phase)


@pytest.mark.parametrize("order", ["slice_major", "phase_major", "static"])
def test_a_true_fourth_axis_is_the_phase_whatever_the_order_says(order):
    assert resolve((8, 8, 3, 5), order, 3, 5) == Layout(3, 5, phase_major=True)


def test_counts_follow_from_the_shape_where_one_is_declared():
    assert resolve((8, 8, 240), "slice_major", 12, None) == Layout(12, 20)
    assert resolve((8, 8, 240), "phase_major", None, 20) == Layout(12, 20, phase_major=True)
    assert resolve((8, 8, 240), "static", None, None) == Layout(240, 1)
    with pytest.raises(InputError, match=r"^layout_unresolved: .* 240 frames are phases; expected layout"):
        resolve((8, 8, 240), "slice_major", None, None)


@pytest.mark.parametrize(
    ("shape", "order", "n_slices", "n_phases", "expected"),
    [
        ((8, 8, 239), "slice_major", 12, 20, "holds 239 frames; expected n_slices x n_phases = 12 x 20"),
        ((8, 8, 3, 5), "slice_major", 5, 3, "holds 15 frames; expected n_slices x n_phases = 5 x 3"),
        ((8, 8, 12), "static", 12, 2, "holds 12 frames; expected n_slices x n_phases = 12 x 2"),
    ],
)
def test_a_mismatch_is_never_truncated(shape, order, n_slices, n_phases, expected):
    with pytest.raises(InputError, match=f"^layout_mismatch: the volume {expected} "):
        resolve(shape, order, n_slices, n_phases)


def test_frames_are_compared_at_64_pixels_or_less():
    frame = np.arange(130 * 70).reshape(130, 70)
    assert small(frame).shape == (43, 23)
    assert small(frame)[0, 0] == frame[:3, :3].mean()
    assert np.array_equal(small(frame[:64, :10]), frame[:64, :10])
    assert small(np.ones((400, 2))).shape == (57, 1)
