import json

import pytest
from study_folders import study, volume, voxels

from cardiolens.base.errors import InputError
from cardiolens.study.layout import Layout
from cardiolens.study.manifest import read_study
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


def timing(**changes):
    manifest = parsed(**changes)
    return manifest.timing(manifest.declared_layout())


def static(n_slices):
    layout = {"order": "static", "n_slices": n_slices, "n_phases": 1}
    return entry(volume_id="lge_sax", sequence="lge", shape=[6, 5, n_slices], layout=layout)


def test_defaults_are_those_of_the_specification():
    manifest = parsed()
    assert timing() == timing(ed_phase=0, es_phase=9, key_layers=[1, 5, 8])
    assert (manifest.spatial_order, manifest.layout_source) == ("unknown", "declared")
    assert not any(manifest.display_transform.model_dump().values())


@pytest.mark.parametrize(
    ("n_phases", "ed", "es"), [(25, 0, 9), (20, 0, 7), (20, 19, 6), (50, 0, 19), (12, 11, 3), (1, 0, 0)]
)
def test_end_systole_rounds_half_up(n_phases, ed, es):
    layout = {"order": "slice_major", "n_slices": 2, "n_phases": n_phases}
    assert timing(shape=[6, 5, 2 * n_phases], layout=layout, ed_phase=ed).es_phase == es


@pytest.mark.parametrize(
    ("n_slices", "layers"), [(10, (1, 5, 8)), (9, (1, 4, 7)), (12, (2, 6, 10)), (2, (0, 1)), (1, (0,))]
)
def test_key_layers_by_default(n_slices, layers):
    assert timing(**static(n_slices)).key_layers == layers


def test_declared_values_win():
    chosen = timing(ed_phase=3, es_phase=2, key_layers=[0, 4, 9])
    assert (chosen.ed_phase, chosen.es_phase, chosen.key_layers) == (3, 2, (0, 4, 9))


def test_static_sequences_need_no_layout():
    manifest = parsed(**static(7) | {"layout": {}})
    assert manifest.declared_layout() == Layout(7, 1)
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
        ({"sequence": "t1"}, "volumes.0: unknown sequence 't1'; expected one of cine, lge, perfusion, t2"),
        (
            {"view": "5ch"},
            "volumes.0: unknown view '5ch' of sequence 'cine'; expected one of sax, 4ch, 3ch, 2ch",
        ),
        ({"volume_id": "cine_4ch"}, "volumes.0: volume_id is 'cine_4ch'; expected 'cine_sax'"),
        (
            {"comment": 1},
            "volumes.0: unknown key 'comment'; expected only confirmed, display_transform, ed_phase",
        ),
        (
            {"layout": {"n_slices": 9, "n_phases": 25}},
            "volumes.0: layout_mismatch: the volume holds 250 frames",
        ),
        ({"shape": [6, 5, 0]}, "volumes.0.shape.2: Input should be greater than 0"),
        ({"ed_phase": 25}, "volumes.0: ed_phase is 25; expected 0..24; correct ed_phase"),
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
        (
            {"display_transform": {"flip": True}},
            "volumes.0.display_transform: unknown key 'flip'; expected only flip_rows, flip_cols",
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": "study-2"}, "schema: Input should be 'study-1', got 'study-2'"),
        ({"patient_id": ""}, "patient_id: String should have at least 1 character"),
        ({"volumes": []}, "volumes: Tuple should have at least 1 item"),
        (
            {"hospital": "X"},
            "unknown key 'hospital'; expected only age_band, cohort, field_tesla, height_cm, patient_id",
        ),
        ({"volumes": [entry(), entry()]}, "2 volumes of view 'cine_sax'; expected one per view"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_wrong_study_is_named_with_what_is_legal(folder, changes, message):
    study(folder, entry(), **changes)
    with pytest.raises(InputError) as caught:
        read_study(folder)
    assert message in str(caught.value)
    assert str(caught.value).startswith("study.json: ")


def test_a_manifest_may_name_subgroups(folder):
    named = {"sex": "female", "age_band": "40-49", "vendor": "A", "field_tesla": 1.5, "site": "north"}
    study(folder, **named)
    told = read_study(folder).manifest.subgroups
    expected = {"sex": "female", "age band": "40-49", "vendor": "A", "site": "north"}
    assert told == expected | {"field strength": "1.5 T"}
    study(folder)
    assert read_study(folder).manifest.subgroups == {}


def test_a_missing_or_broken_manifest_is_one_sentence(folder):
    folder.mkdir()
    with pytest.raises(
        InputError, match=r"^study\.json: cannot be read \(No such file or directory\); expected"
    ):
        read_study(folder)
    (folder / "study.json").write_text('{"schema": ')
    with pytest.raises(InputError, match=r"^study\.json: .*Invalid JSON"):
        read_study(folder)


@pytest.mark.parametrize("path", ["../S2/cine_sax.nii.gz", "/etc/hostname", "", "a\x00b"])
def test_a_path_that_leaves_the_folder_is_refused(folder, path):
    study(folder, entry(path=path))
    with pytest.raises(InputError, match="leads out of the study folder; expected a file inside it"):
        read_study(folder)


@pytest.mark.parametrize("name", ["cine_sax.nii.gz", "mask.nii.gz", "study.json"])
def test_a_link_that_leaves_the_folder_is_refused(folder, name):
    elsewhere = study(folder.with_name("S2"), volume(folder.with_name("S2"), voxels()))
    mask = {"path": "mask.nii.gz", "sha256": "0" * 64}
    study(folder, entry(mask=mask))
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(elsewhere / ("study.json" if name == "study.json" else "cine_sax.nii.gz"))
    with pytest.raises(InputError, match=f"^{name}: leads out of the study folder"):
        read_study(folder)


def test_links_within_the_folder_and_to_the_folder_are_followed(folder):
    study(folder, volume(folder, path="original.nii.gz") | {"path": "cine_sax.nii.gz"})
    (folder / "cine_sax.nii.gz").symlink_to("original.nii.gz")
    folder.with_name("alias").symlink_to(folder)
    assert read_study(folder.with_name("alias")).files() == ("cine_sax.nii.gz",)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sex": "f"}, "sex"),
        ({"age_band": "47"}, "age_band"),
        ({"age_band": "44-46"}, "spans fewer than 5 years"),
        ({"age_band": "49-40"}, "spans fewer than 5 years"),
        ({"field_tesla": 0}, "field_tesla"),
        ({"vendor": ""}, "vendor"),
        ({"site": "a\nb"}, "site"),
    ],
)
def test_a_subgroup_that_is_none_is_refused(folder, given, said):
    study(folder, **given)
    with pytest.raises(InputError, match=said):
        read_study(folder)
