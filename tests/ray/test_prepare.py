"""Preparing on a local Ray cluster: in parallel, again, with a bad study, with a killed driver."""

import gc
import os
import warnings

import pytest

from cardiolens.base.errors import RunError
from cardiolens.config.cluster import ClusterSpec
from cardiolens.config.dataset import DatasetSpec
from cardiolens.runtime.connect import ray_cluster
from cardiolens.study.cohort import read_cohort, state_of
from cardiolens.study.manifest import read_study
from cardiolens.study.shards import read_volumes
from cardiolens.workflow.steps.prepare_studies import prepare
from tests.unit.study_folders import study, volume, voxels

pytestmark = [
    pytest.mark.full,
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),  # Ray Data reads its own old options
]


@pytest.fixture(scope="module", autouse=True)
def _cluster():
    with ray_cluster(ClusterSpec()):
        yield
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ResourceWarning
        )  # Ray leaves the handles of its daemons to the collector
        gc.collect()


def write_study(folder, seed):
    """A study of one static LGE stack."""
    layout = {"order": "slice_major", "n_slices": 6, "n_phases": 1}
    study(folder, volume(folder, voxels(6, 1, (16, 16), seed), "lge_sax", layout=layout))


@pytest.fixture
def dataset(tmp_path):
    for seed, name in enumerate(("A", "B", "C", "D")):
        write_study(tmp_path / "in" / name, seed)
    return DatasetSpec(name="tiny", studies=tmp_path / "in", questions=tmp_path / "questions.jsonl")


def counts(done):
    return done.prepared, done.unchanged, len(done.failed)


def test_a_cohort_is_prepared_once_and_again_only_where_it_changed(dataset, tmp_path):
    store = tmp_path / "store"
    assert counts(prepare(dataset, store)) == (4, 0, 0)
    first = read_volumes(store)
    assert first["study_id"].to_pylist() == ["A", "B", "C", "D"]
    assert len(set(first["part"].to_pylist())) > 1  # no part for all while processors idle

    write_study(dataset.studies / "B", seed=99)
    os.utime(dataset.studies / "C" / "lge_sax.nii.gz")
    again = prepare(dataset, store)
    assert counts(again) == (2, 2, 0)  # a file that was touched is read again, whatever it holds
    read = [dataset.studies / name / "lge_sax.nii.gz" for name in ("B", "C")]
    assert again.bytes_read == sum(path.stat().st_size for path in read)
    second = read_volumes(store)
    changed = [old != new for old, new in zip(first.to_pylist(), second.to_pylist(), strict=True)]
    assert changed == [False, True, True, False]
    assert counts(prepare(dataset, store)) == (0, 4, 0)

    (store / "frames" / second["part"][1].as_py()).unlink()
    assert counts(prepare(dataset, store)) == (1, 3, 0)

    narrower = dataset.model_copy(update={"windows": {"cine": (2.0, 98.0), "lge": (2.0, 98.0)}})
    assert counts(prepare(narrower, store)) == (4, 0, 0)


def test_a_bad_study_is_listed(dataset, tmp_path, caplog):
    (dataset.studies / "C" / "lge_sax.nii.gz").write_bytes(b"no image")
    done = prepare(dataset, tmp_path / "store")
    assert counts(done) == (3, 0, 1)
    assert list(done.failed) == ["C"]
    assert any(line.startswith("C: lge_sax.nii.gz: is not NIfTI: it starts with") for line in caplog.messages)
    assert read_volumes(tmp_path / "store")["study_id"].to_pylist() == ["A", "B", "D"]
    assert read_cohort(tmp_path / "store").tried == {"C": state_of(read_study(dataset.studies / "C"))}


def test_a_store_in_the_way_is_one_error(dataset, tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "volumes").write_text("a file where a folder belongs")
    with pytest.raises(RunError, match="volumes"):
        prepare(dataset, tmp_path / "store")
