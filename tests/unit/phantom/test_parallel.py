"""Studies made by Ray Data have the bytes of those made one after another; the job reports what is wrong."""

import pytest

from cardiolens.base.errors import RunError
from cardiolens.config.cluster import ClusterSpec
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.phantom_cohort import make_cohort
from cardiolens.runtime.connect import ray_cluster

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
