"""Preparing studies: bad ones are named, unchanged ones not read again, images of two studies found."""

import logging
import os
from functools import partial
from operator import attrgetter

import numpy as np
import pyarrow as pa
import pytest
from study_folders import WINDOWS, published, study, volume, voxels, write_nifti

from cardiolens.base import stage_versions
from cardiolens.base.errors import InputError
from cardiolens.config.dataset import DatasetSpec
from cardiolens.storage import schemas, tables
from cardiolens.study.cohort import read_cohort, state_of, write_cohort
from cardiolens.study.group import prepare_group, refused_volumes
from cardiolens.study.manifest import read_study
from cardiolens.study.same_pixels import same_pixels
from cardiolens.study.shards import read_volumes
from cardiolens.workflow.steps.prepare_studies import is_prepared, prepare
from tests.unit.small_cohort import reader, sweep_spec


def dataset(root, **changes):
    return DatasetSpec(**{"name": "tiny", "studies": root, "questions": root / "questions.jsonl"} | changes)


def changed_volume(folder, array=None, **changes):
    """A study whose file was replaced after its manifest was written, hash included."""
    entry = volume(folder)
    if array is not None:
        entry["sha256"] = write_nifti(folder / entry["path"], array)
    study(folder, entry | changes)


def not_nifti(folder):
    changed_volume(folder)
    (folder / "cine_sax.nii.gz").write_text("DICM" * 200)


def test_a_bad_study_is_named_and_the_others_are_prepared(tmp_path):
    bad = tmp_path / "in" / "B"
    study(bad, volume(bad), volume(bad, np.full((6, 5, 12), 1, np.int16), "cine_4ch"))
    folders = [study(tmp_path / "in" / "A"), bad, study(tmp_path / "in" / "C")]
    outcomes = published(tmp_path / "store", folders)
    assert [bool(outcome.record) for outcome in outcomes] == [True, False, True]
    assert outcomes[1].error.startswith("cine_4ch.nii.gz: is constant (1); expected an image with contrast")
    assert "\n" not in outcomes[1].error
    assert read_volumes(tmp_path / "store")["study_id"].to_pylist() == ["A", "C"]
    assert tables.read(tmp_path / "store" / "volumes", schemas.VOLUMES)["study_id"].to_pylist() == ["A", "C"]


def test_a_short_axis_that_is_refused_is_held_alone(tmp_path):
    """Its cycle would give the phases of the others."""
    four = volume(tmp_path, voxels(1, 12), "cine_4ch", layout={"n_slices": 1})
    read = read_study(study(tmp_path, volume(tmp_path, sha256="0" * 64), four))
    assert refused_volumes(read, WINDOWS).keys() == {"cine_sax"}


@pytest.fixture
def known(tmp_path):
    """A dataset of two studies, prepared."""
    return stored(tmp_path, {"A": voxels(), "B": voxels(seed=8)})


def test_what_is_unchanged_is_not_read(known, caplog):
    caplog.set_level(logging.INFO)
    prepare(dataset(known / "in"), known / "store")  # looks once for images in two studies
    before = (known / "store" / "cohort.json").stat().st_mtime_ns
    done = prepare(dataset(known / "in"), known / "store")
    assert (done.prepared, done.unchanged, done.failed, done.bytes_read) == (0, 2, {}, 0)
    assert caplog.messages[-1].startswith("2 studies: 0 prepared, 2 unchanged, 0 failed (")
    assert (known / "store" / "cohort.json").stat().st_mtime_ns == before


def test_a_rewritten_file_changes_the_state_also_with_its_old_time(known):
    read = read_study(known / "in" / "A")
    assert state_of(read) == read_cohort(known / "store").studies["A"].state
    path = known / "in" / "A" / "cine_sax.nii.gz"
    before = path.stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert state_of(read) != read_cohort(known / "store").studies["A"].state


def test_two_folders_of_one_study_id_are_both_refused(known, caplog):
    study(known / "in" / "C", study_id="A")
    done = prepare(dataset(known / "in"), known / "store")
    message = (
        "study.json: study_id 'A' stands in the folders A, C; expected one folder a study_id; "
        "rename or remove one"
    )
    assert done.failed == {"A": message, "C": message}
    assert f"A: {message}" in caplog.messages
    assert read_volumes(known / "store")["study_id"].to_pylist() == ["B"]
    assert read_cohort(known / "store").failed == {"A": message, "C": message}


@pytest.fixture
def sweep_with_failures(known):
    """A sweep whose cohort holds A and B, C whose file is no image, and D without a manifest."""
    not_nifti(known / "in" / "C")
    (known / "in" / "D").mkdir()
    failed = {}
    for name in ("C", "D"):
        (outcome,) = prepare_group(known / "store", "part-2.parquet", [known / "in" / name], WINDOWS)
        failed[name] = outcome.error
    tried = {"C": state_of(read_study(known / "in" / "C"))}
    found = read_cohort(known / "store").model_copy(
        update={"failed": failed, "tried": tried, "same_pixels": ()}
    )
    write_cohort(known / "store", found)
    return sweep_spec(known, reader("uniform"), dataset=dataset(known / "in").model_dump(mode="json"))


def test_what_failed_and_is_unchanged_need_not_be_tried_again(sweep_with_failures, monkeypatch):
    assert is_prepared(sweep_with_failures)
    monkeypatch.setattr(stage_versions, "PREPARED", "another")
    assert not is_prepared(sweep_with_failures)


@pytest.mark.parametrize(
    "change",
    [
        lambda root: not_nifti(root / "C"),  # rewritten
        lambda root: changed_volume(root / "A", voxels(seed=3)),
        lambda root: study(root / "B", volume(root / "B", ed_phase=1)),
        lambda root: (root / "D" / "study.json").write_text("{}"),
        lambda root: study(root / "E"),
        lambda root: (root / "B").rename(root.parent / "B"),
        lambda root: (root.parent / "store" / "frames" / "part-1.parquet").unlink(),
    ],
)  # fmt: skip
def test_a_cohort_that_changed_is_prepared_again(sweep_with_failures, change):
    change(sweep_with_failures.dataset.studies)
    assert not is_prepared(sweep_with_failures)


def test_another_window_prepares_again(known):
    given = dataset(known / "in", windows={"lge": (2.0, 98.0)}).model_dump(mode="json")
    assert not is_prepared(sweep_spec(known, reader("uniform"), dataset=given))


def test_studies_are_grouped_by_pixels_in_order(tmp_path):
    studies = [read_study(study(tmp_path / name)) for name in "ABCDE"]  # 360 pixels each
    by_pixels = partial(tables.grouped, studies, attrgetter("n_pixels"))
    assert [[s.study_id for s in group] for group in by_pixels(800)] == [
        ["A", "B"],
        ["C", "D"],
        ["E"],
    ]
    assert len(list(by_pixels(1))) == 5


def stored(root, arrays):
    """A store with a study for each array, prepared in this process."""
    folders = []
    for name, array in arrays.items():
        folder = root / "in" / name
        folders.append(study(folder, volume(folder, array), patient_id=f"patient {name}"))
    published(root / "store", folders)
    return root


def pairs(root):
    return [
        (*pair.studies, pair.frames) for pair in same_pixels(root / "store", read_volumes(root / "store"))
    ]


def test_one_patient_under_two_ids_is_named_and_refused(tmp_path):
    first = voxels(seed=1)
    root = stored(tmp_path, {"A": first, "B": voxels(seed=2), "C": first})
    ((ours, theirs, frames),) = pairs(root)
    assert (ours, theirs) == ("A", "C")
    assert frames > 1
    with pytest.raises(InputError, match=rf"A and C \({frames} images\).*allow=\[same_pixels\]"):
        prepare(dataset(root / "in"), root / "store")
    with pytest.raises(InputError, match="A and C"):  # nor by asking again
        prepare(dataset(root / "in"), root / "store")
    given = dataset(root / "in").model_dump(mode="json")
    with pytest.raises(InputError, match="A and C"):  # nor by a job of SLURM
        is_prepared(sweep_spec(root, reader("uniform"), dataset=given))


def test_it_is_kept_where_it_is_allowed(tmp_path):
    root = stored(tmp_path, dict.fromkeys("AB", voxels(seed=1)))
    allowed = dataset(root / "in", allow=["same_pixels"])
    assert prepare(allowed, root / "store").unchanged == 2
    (pair,) = read_cohort(root / "store").same_pixels
    assert pair.studies == ("A", "B")


def test_black_frames_are_no_evidence(tmp_path):
    arrays = {name: voxels(seed=seed) for seed, name in enumerate("ABC")}
    for array in arrays.values():
        array[:, :, 0] = 0
    shared = stored(tmp_path / "black", arrays)
    assert pairs(shared) == []


def test_other_studies_of_a_part_that_are_no_longer_current_do_not_count(tmp_path):
    root = stored(tmp_path, dict.fromkeys("AB", voxels(seed=1)))
    volumes = read_volumes(root / "store")
    only = volumes.filter(pa.array([name == "A" for name in volumes["study_id"].to_pylist()]))
    assert same_pixels(root / "store", only) == ()
