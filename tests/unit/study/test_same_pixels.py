"""Images that stand in two studies are found, named and refused."""

import json

import pyarrow as pa
import pytest
from study_folders import study, voxels, write_nifti

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import DatasetSpec, Windows
from cardiolens.study.cohort import Cohort, read_cohort, write_cohort
from cardiolens.study.group import prepare_group
from cardiolens.study.same_pixels import same_pixels
from cardiolens.study.shards import read_volumes
from cardiolens.workflow.steps.prepare_studies import prepare

WINDOWS = Windows(pct=(1.0, 99.0))


def dataset(root, **changes):
    return DatasetSpec(**{"name": "tiny", "studies": root, "questions": root / "questions.jsonl"} | changes)


def stored(root, arrays):
    """A store with a study for each array, prepared in this process."""
    folders = []
    for name, array in arrays.items():
        folder = study(root / "in" / name, patient_id=f"patient {name}")
        manifest = json.loads((folder / "study.json").read_text())
        (entry,) = manifest["volumes"]
        entry["sha256"] = write_nifti(folder / entry["path"], array)
        (folder / "study.json").write_text(json.dumps(manifest))
        folders.append(folder)
    outcomes = prepare_group(root / "store", "part-1.parquet", folders, WINDOWS)
    studies = {outcome.name: outcome.record for outcome in outcomes}
    write_cohort(root / "store", Cohort(window_pct=WINDOWS.pct, studies=studies, failed={}))
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
