import json
import logging
import os

import numpy as np
import pytest
from study_folders import sha256, study, volume, voxels, write_nifti

from cardiolens.base import stage_versions
from cardiolens.base.errors import InputError
from cardiolens.config.dataset import DatasetSpec, Windows
from cardiolens.storage import schemas, tables
from cardiolens.study.cohort import Cohort, failed_attempt, read_cohort, untouched, write_cohort
from cardiolens.study.group import by_pixels, prepare_group
from cardiolens.study.manifest import read_study
from cardiolens.study.shards import read_volumes
from cardiolens.workflow.steps.prepare_studies import Prepared, is_prepared, prepare
from tests.unit.small_cohort import reader, sweep_spec

PCT = (1.0, 99.0)
WINDOWS = Windows(pct=PCT)


def dataset(root, **changes):
    return DatasetSpec(**{"name": "tiny", "studies": root, "questions": root / "questions.jsonl"} | changes)


def publish(store, outcomes):
    studies = {outcome.name: outcome.record for outcome in outcomes if outcome.record}
    write_cohort(store, Cohort(window_pct=PCT, studies=studies, failed={}))


def changed_volume(folder, array=None, **changes):
    """A study whose file was replaced after its manifest was written, hash included."""
    entry = volume(folder)
    if array is not None:
        entry["sha256"] = write_nifti(folder / entry["path"], array)
    study(folder, entry | changes)


def missing(folder):
    changed_volume(folder)
    (folder / "cine_sax.nii.gz").unlink()


def not_nifti(folder):
    changed_volume(folder)
    (folder / "cine_sax.nii.gz").write_text("DICM" * 200)


def truncated(folder):
    changed_volume(folder)
    path = folder / "cine_sax.nii.gz"
    path.write_bytes(path.read_bytes()[:-30])


def not_finite(folder, value=np.nan):
    array = voxels().astype(np.float32)
    array[2, 2, 2] = value
    changed_volume(folder, array)


def wrong_mask(folder):
    mask = {"path": "mask.nii.gz", "sha256": write_nifti(folder / "mask.nii.gz", voxels(5, 4))}
    changed_volume(folder, mask=mask)


def outside_link(folder):
    changed_volume(folder)
    outside = folder.parent.parent / "elsewhere.nii.gz"
    (folder / "cine_sax.nii.gz").rename(outside)
    (folder / "cine_sax.nii.gz").symlink_to(outside)


RGB = np.dtype([("R", "u1"), ("G", "u1"), ("B", "u1")])
FILE = "cine_sax.nii.gz: "
BAD = {
    "missing file": (missing, FILE + "cannot be read (No such file or directory); expected the file that"),
    "not NIfTI": (not_nifti, FILE + "is not NIfTI: it starts with b'DICM'; expected a single-file NIfTI"),
    "truncated gzip": (truncated, FILE + "its gzip stream is truncated after"),
    "Z is not Ns x Np": (
        lambda f: changed_volume(f, layout={"n_slices": 5, "n_phases": 4}),
        "study.json: volumes.0: layout_mismatch: the volume holds 12 frames; expected n_slices x n_phases",
    ),
    "Z differs in the file": (
        lambda f: changed_volume(f, voxels(3, 3)),
        FILE + "its shape is (6, 5, 9); expected (6, 5, 12) as declared; correct shape or file",
    ),
    "5D": (
        lambda f: changed_volume(f, np.zeros((6, 5, 3, 2, 2), np.int16)),
        FILE + "has 5 axes (6, 5, 3, 2, 2);",
    ),
    "RGB": (
        lambda f: changed_volume(f, np.zeros((6, 5, 12), RGB)),
        FILE + "its voxels are of type RGB; expected",
    ),
    "zero-size axis": (
        lambda f: changed_volume(f, np.zeros((6, 0, 12), np.int16)),
        FILE + "has an axis of size zero (6, 0, 12); expected at least one voxel per axis",
    ),
    "NaN": (
        not_finite,
        FILE + "1 of 360 voxels are NaN or infinite; expected finite intensities; re-export it",
    ),
    "Inf": (lambda f: not_finite(f, np.inf), FILE + "1 of 360 voxels are NaN or infinite; expected finite"),
    "constant volume": (
        lambda f: changed_volume(f, np.full((6, 5, 12), 4, np.int16)),
        FILE + "is constant (4); expected an image with contrast; re-export the volume",
    ),
    "unknown view": (
        lambda f: changed_volume(f, view="5ch"),
        "study.json: volumes.0: unknown view '5ch' of sequence 'cine'; expected one of sax, 4ch, 3ch, 2ch",
    ),
    "unknown sequence": (
        lambda f: changed_volume(f, sequence="t1"),
        "study.json: volumes.0: unknown sequence 't1'; expected one of cine, lge, perfusion, t2; correct",
    ),
    "id with a separator": (
        lambda f: study(f, study_id="a/b"),
        "study.json: study_id: expected 1 to 128 printable characters without path separators or '..'; "
        "rename the study, got 'a/b'",
    ),
    "id with dots": (lambda f: study(f, study_id=".."), "study.json: study_id: expected 1 to 128 printable"),
    "two volumes of a view": (
        lambda f: study(f, volume(f), volume(f)),
        "study.json: 2 volumes of view 'cine_sax'; expected one per view; keep one of them",
    ),
    "unknown key": (
        lambda f: changed_volume(f, note="x"),
        "study.json: volumes.0: unknown key 'note'; expected only",
    ),
    "hash": (lambda f: changed_volume(f, sha256="0" * 64), FILE + "its sha256 is "),
    "mask shape": (
        wrong_mask,
        "mask.nii.gz: is a mask of shape (6, 5, 20); expected (6, 5, 12), the shape of cine_sax.nii.gz; c",
    ),
    "link out of the folder": (
        outside_link,
        FILE + "leads out of the study folder; expected a file inside it",
    ),
    "no manifest": (lambda f: f.mkdir(), "study.json: cannot be read (No such file or directory); expected"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_study_is_named_and_the_others_are_prepared(tmp_path, case):
    spoil, message = BAD[case]
    good = [study(tmp_path / "in" / name) for name in ("A", "C")]
    spoil(tmp_path / "in" / "B")
    folders = [good[0], tmp_path / "in" / "B", good[1]]
    outcomes = prepare_group(tmp_path / "store", "part-1.parquet", folders, WINDOWS, strict=False)
    assert [bool(outcome.record) for outcome in outcomes] == [True, False, True]
    assert outcomes[1].error.startswith(message)
    assert "\n" not in outcomes[1].error
    publish(tmp_path / "store", outcomes)
    assert read_volumes(tmp_path / "store")["study_id"].to_pylist() == ["A", "C"]


def test_a_study_whose_second_volume_is_bad_leaves_no_rows(tmp_path):
    folder = tmp_path / "in" / "B"
    study(folder, volume(folder), volume(folder, np.full((6, 5, 12), 1, np.int16), "cine_4ch"))
    outcomes = prepare_group(
        tmp_path / "store", "part-1.parquet", [study(tmp_path / "in" / "A"), folder], WINDOWS, strict=False
    )
    assert outcomes[1].error.startswith("cine_4ch.nii.gz: is constant (1)")
    assert tables.read(tmp_path / "store" / "volumes", schemas.VOLUMES)["study_id"].to_pylist() == ["A"]


def test_strict_ends_a_group_at_the_first_bad_study(tmp_path):
    not_nifti(tmp_path / "in" / "A")
    folders = [tmp_path / "in" / "A", study(tmp_path / "in" / "B")]
    outcomes = prepare_group(tmp_path / "store", "part-1.parquet", folders, WINDOWS, strict=True)
    assert [outcome.name for outcome in outcomes] == ["A"]
    assert not list((tmp_path / "store" / "frames").glob("part-*"))


@pytest.fixture
def known(tmp_path):
    """A dataset of two studies, prepared."""
    folders = [study(tmp_path / "in" / name) for name in ("A", "B")]
    changed_volume(folders[1], voxels(seed=8))
    publish(
        tmp_path / "store",
        prepare_group(tmp_path / "store", "part-1.parquet", folders, WINDOWS, strict=False),
    )
    return tmp_path


def test_what_is_unchanged_is_not_read(known, caplog):
    caplog.set_level(logging.INFO)
    prepare(dataset(known / "in"), known / "store", strict=False)  # looks once for images in two studies
    before = (known / "store" / "cohort.json").stat()
    done = prepare(dataset(known / "in"), known / "store", strict=False)
    assert (done.prepared, done.unchanged, done.failed, done.bytes_read) == (0, 2, (), 0)
    assert caplog.messages[-1].startswith("2 studies: 0 prepared, 2 unchanged, 0 failed (")
    assert (known / "store" / "cohort.json").stat() == before


def test_a_touched_file_is_noticed_and_only_hashed(known):
    read = read_study(known / "in" / "A")
    assert untouched(read, read_cohort(known / "store").studies["A"])
    path = known / "in" / "A" / "cine_sax.nii.gz"
    os.utime(path)
    assert not untouched(read, read_cohort(known / "store").studies["A"])
    outcomes = prepare_group(known / "store", "part-2.parquet", [known / "in" / "A"], WINDOWS, strict=False)
    assert [(o.prepared, o.record.part, o.n_bytes) for o in outcomes] == [
        (False, "part-1.parquet", path.stat().st_size)
    ]
    assert outcomes[0].record.files["cine_sax.nii.gz"].stamp.mtime_ns == path.stat().st_mtime_ns
    assert not (known / "store" / "frames" / "part-2.parquet").exists()


def test_a_changed_file_changed_manifest_or_lost_part_is_prepared(known):
    changed_volume(known / "in" / "A", voxels(seed=3))
    study(known / "in" / "B", volume(known / "in" / "B", ed_phase=1))
    outcomes = prepare_group(
        known / "store", "part-2.parquet", sorted((known / "in").iterdir()), WINDOWS, strict=False
    )
    assert [(o.prepared, o.record.part) for o in outcomes] == [(True, "part-2.parquet")] * 2
    publish(known / "store", outcomes)
    (known / "store" / "frames" / "part-2.parquet").unlink()
    again = prepare_group(known / "store", "part-3.parquet", [known / "in" / "A"], WINDOWS, strict=False)
    assert (again[0].prepared, again[0].record.part) == (True, "part-3.parquet")


def test_another_window_prepares_again(known):
    outcomes = prepare_group(
        known / "store", "part-2.parquet", [known / "in" / "A"], Windows(pct=(2.0, 98.0)), strict=False
    )
    assert outcomes[0].prepared


def test_two_folders_of_one_study_id_are_both_refused(known, caplog):
    study(known / "in" / "C", study_id="A")
    done = prepare(dataset(known / "in"), known / "store", strict=False)
    message = (
        "study.json: study_id 'A' stands in the folders A, C; expected one folder a study_id; "
        "rename or remove one"
    )
    assert done.failed == (("A", message), ("C", message))
    assert f"A: {message}" in caplog.messages
    assert read_volumes(known / "store")["study_id"].to_pylist() == ["B"]
    assert read_cohort(known / "store").failed == {"A": message, "C": message}


def test_strict_stops_at_once(known):
    (known / "in" / "C").mkdir()
    with pytest.raises(InputError, match=r"^C: study\.json: cannot be read"):
        prepare(dataset(known / "in"), known / "store", strict=True)


def test_a_removed_study_leaves_the_cohort(known):
    (known / "in" / "B").rename(known / "B")
    assert prepare(dataset(known / "in"), known / "store", strict=False).unchanged == 1
    assert read_volumes(known / "store")["study_id"].to_pylist() == ["A"]


@pytest.fixture
def sweep_with_failures(known):
    """A sweep whose cohort holds A and B, C whose file is no image, and D without a manifest."""
    not_nifti(known / "in" / "C")
    (known / "in" / "D").mkdir()
    failed = {}
    for name in ("C", "D"):
        (outcome,) = prepare_group(
            known / "store", "part-2.parquet", [known / "in" / name], WINDOWS, strict=False
        )
        failed[name] = outcome.error
    kept = {"C": failed_attempt(read_study(known / "in" / "C"))}
    found = read_cohort(known / "store").model_copy(update={"failed": failed, "tried": kept})
    write_cohort(known / "store", found)
    return sweep_spec(known, reader("uniform"), dataset=dataset(known / "in").model_dump(mode="json"))


def test_what_failed_and_is_unchanged_need_not_be_tried_again(sweep_with_failures):
    assert is_prepared(sweep_with_failures)


@pytest.mark.parametrize(
    "change",
    [
        lambda root: not_nifti(root / "C"),  # rewritten
        lambda root: (root / "C" / "cine_sax.nii.gz").unlink(),
        lambda root: study(root / "C", volume(root / "C", ed_phase=1)),
        lambda root: (root / "D" / "study.json").write_text("{}"),
        lambda root: study(root / "E"),
        lambda root: (root / "D").rmdir(),
        lambda root: (root / "B").rename(root.parent / "B"),
    ],
)  # fmt: skip
def test_a_cohort_that_changed_is_prepared_again(sweep_with_failures, change):
    change(sweep_with_failures.dataset.studies)
    assert not is_prepared(sweep_with_failures)


def test_other_code_tries_again_what_failed(sweep_with_failures, monkeypatch):
    monkeypatch.setattr(stage_versions, "PREPARED", "another")
    assert not is_prepared(sweep_with_failures)


def test_a_folder_without_studies_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read .* expected a folder of study folders"):
        prepare(dataset(tmp_path / "nowhere"), tmp_path / "store", strict=False)
    with pytest.raises(InputError, match="holds no studies; expected a folder of study folders"):
        prepare(dataset(tmp_path), tmp_path / "store", strict=False)


def test_the_cohort_names_every_file_that_was_read(known):
    raw = json.loads((known / "store" / "cohort.json").read_text())
    path = known / "in" / "A" / "cine_sax.nii.gz"
    found = os.stat(path)
    assert raw["schema"] == "cohort-1"
    assert raw["studies"]["A"]["files"]["cine_sax.nii.gz"] == {
        "stamp": {
            "size": found.st_size,
            "mtime_ns": found.st_mtime_ns,
            "ctime_ns": found.st_ctime_ns,
            "inode": found.st_ino,
        },
        "sha256": sha256(path),
    }


def test_studies_are_grouped_by_pixels_in_order(tmp_path):
    studies = [read_study(study(tmp_path / name)) for name in "ABCDE"]  # 360 pixels each
    assert [[s.study_id for s in group] for group in by_pixels(studies, 800)] == [
        ["A", "B"],
        ["C", "D"],
        ["E"],
    ]
    assert len(list(by_pixels(studies, 1))) == 5


def test_a_preparation_in_one_line():
    done = Prepared(3, 8, (("X", "why"),), 1.25, 2_500_000)
    assert str(done) == "12 studies: 3 prepared, 8 unchanged, 1 failed (2.5 MB read in 1.2 s)"
