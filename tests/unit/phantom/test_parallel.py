"""Studies made by Ray Data have the bytes of those made one after another; the job reports what is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

from cardiolens.base.errors import RunError
from cardiolens.config.cluster import ClusterSpec
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.phantom_cohort import make_cohort
from cardiolens.runtime.connect import ray_cluster

ROOT = Path(__file__).parents[3]
SPEC = PhantomSpec(canonical=("PH-ICM-RCA",), n_sampled=2)

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),  # Ray Data reads its own old options
]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "cohort"
    make_cohort(SPEC, folder)
    return contents(folder)


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_workers_write_the_same_bytes_as_one_process(alone, tmp_path):
    with ray_cluster(ClusterSpec(object_store_gib=0.2)):
        make_cohort(SPEC, tmp_path / "cohort")
        assert contents(tmp_path / "cohort") == alone
        (tmp_path / "file").write_text("")
        with pytest.raises(RunError, match="cannot be written"):
            make_cohort(SPEC, tmp_path / "file" / "cohort")


def job(*words):
    return subprocess.run(
        [sys.executable, "jobs/make_phantom.py", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.full
def test_the_job_makes_a_cohort_and_names_what_is_wrong(tmp_path):
    small = ("dataset=phantom_ci", "dataset.phantom.n_sampled=0", "dataset.phantom.canonical=[PH-NORMAL]")
    done = job(*small, f"out={tmp_path / 'cohort'}", "masks=true")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"phantom: {tmp_path / 'cohort'}"), (
        done.stderr
    )
    assert (tmp_path / "cohort" / "studies" / "PH-NORMAL" / "masks" / "labels.json").exists()
    again = job(*small, f"out={tmp_path / 'cohort'}")
    assert again.returncode == 2
    assert "is not empty; give a folder that is absent or empty" in again.stderr
    wrong = job("dataset=phantom_ci", "dataset.phantom.canonical=[PH-NOPE]", f"out={tmp_path / 'other'}")
    assert wrong.returncode == 2
    assert "name each once, of PH-NORMAL" in wrong.stderr
    assert "Traceback" not in wrong.stderr
