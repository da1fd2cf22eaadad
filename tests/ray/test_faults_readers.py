"""Faults of disks and nodes, on simulated readers: what they say is known, at once."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

from tests.ray.conftest import Place
from tests.ray.processes import descendants, process, wait_for_end

pytestmark = [pytest.mark.ray, pytest.mark.full]

READ = [
    "name=faults",
    "model=[noisy]",
    "selector=[clinical,random]",
    "budget=[8,16]",
    "tracker=none",
    "stream.flush_rows=16",
]
PLUGIN = str(Path(__file__).parent / "plugin")
SLOWLY = {
    "PYTHONPATH": os.pathsep.join([PLUGIN, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
    "CARDIOLENS_TEST_SECONDS": "2",
}


def said(place: Place) -> pa.Table:
    return place.completions("noisy").select(["request_key", "text"]).sort_by("request_key")


@pytest.fixture(scope="module")
def read(prepared: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A sweep of a reader that nothing happened to."""
    root = tmp_path_factory.mktemp("read")
    subprocess.run(["cp", "-r", str(prepared.root / "store"), str(root / "store")], check=True)
    place = Place(root, prepared.data)
    place.sweep(*READ)
    return place


def assert_as(place: Place, read: Place) -> None:
    """Complete, unique and equal."""
    assert said(place).equals(said(read))
    assert_frame_equal(place.scores().to_pandas(), read.scores().to_pandas())


def assert_answers_as(place: Place, read: Place) -> None:
    """Complete and equal; a request that was in flight may have two completions."""
    assert set(place.keys("noisy")) == set(read.keys("noisy"))
    assert_frame_equal(place.scores().to_pandas(), read.scores().to_pandas())


@contextmanager
def disk_of(folder: Path, size: int) -> Iterator[None]:
    """A file system of so many bytes at a folder."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"needs the right to mount a file system: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def small_disk(prepared: Place, tmp_path: Path) -> Iterator[Place]:
    """A store on a disk that has room for half the completions."""
    size = sum(path.stat().st_blocks * 512 for path in (prepared.root / "store").rglob("*"))
    with disk_of(tmp_path / "store", size + 64 * 1024):
        subprocess.run(["cp", "-r", f"{prepared.root}/store/.", str(tmp_path / "store")], check=True)
        yield Place(tmp_path, prepared.data)


def test_a_full_disk_ends_the_run_with_a_true_error_and_loses_nothing_written(
    small_disk: Place, read: Place
) -> None:
    printed = small_disk.sweep(*READ, expect=1)
    assert "cannot be written (" in printed
    assert "No space left on device); free space or check permissions" in printed
    assert "Traceback" not in printed
    kept = len(said(small_disk))
    remount = ["mount", "-o", "remount,size=1g", str(small_disk.root / "store")]
    subprocess.run(remount, check=True)
    small_disk.sweep(*READ)
    requests = small_disk.manifest()["requests"]
    assert requests["executed"] == requests["unique"] - kept
    assert_as(small_disk, read)


@pytest.mark.long
def test_frames_that_fit_neither_memory_nor_the_disk_of_ray_are_a_true_error(
    place: Place, tmp_path: Path
) -> None:
    words = [*READ, "+model.noisy.long_side=2048", "limit=2"]
    memory = {"RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": str(75 << 20)}
    disk = tmp_path / "spilled"
    where = {"type": "filesystem", "params": {"directory_path": str(disk)}}
    with disk_of(disk, 16 * 2**20):
        printed = place.sweep(*words, expect=1, RAY_object_spilling_config=json.dumps(where), **memory)
    assert "OBJECT_STORE_MEMORY_PROPORTION" in printed
    assert "Traceback" not in printed
    place.sweep(*words)
    requests = place.manifest()["requests"]
    assert requests["ok"] == requests["unique"] > 0


def test_a_killed_worker_is_replaced_within_the_run(place: Place, read: Place) -> None:
    running = place.start(*READ, **SLOWLY)
    place.wait_for_parts(running, "noisy")
    os.kill(process(running.pid, "ray::MapWorker"), signal.SIGKILL)
    printed, _ = running.communicate(timeout=1500)
    assert running.returncode == 0, printed
    assert_answers_as(place, read)


@pytest.mark.long
def test_a_reader_that_hangs_ends_the_run_with_a_true_error(place: Place) -> None:
    hanging = SLOWLY | {"CARDIOLENS_TEST_SECONDS": "3600"}
    printed = place.sweep(*READ, "stream.stall_seconds=12", expect=1, **hanging)
    assert "no request was completed for 12 s" in printed
    assert "Traceback" not in printed


@pytest.mark.long
def test_a_node_that_dies_is_replaced_by_another(place: Place, read: Place) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        second = cluster.add_node(num_cpus=1, env_vars=SLOWLY)
        without = {"RAY_AUTH_MODE": "disabled"}  # whatever token is in the tester's home
        running = place.start(*READ, f"cluster.address={cluster.address}", **SLOWLY, **without)
        place.wait_for_parts(running, "noisy")
        cluster.remove_node(second, allow_graceful=False)
        printed, _ = running.communicate(timeout=1500)
        assert running.returncode == 0, printed
        assert_answers_as(place, read)
    finally:
        cluster.shutdown()


def test_a_killed_driver_loses_only_what_was_in_flight(place: Place, read: Place) -> None:
    running = place.start(*READ, **SLOWLY)
    place.wait_for_parts(running, "noisy")
    working = descendants(running.pid)
    running.kill()
    running.communicate()
    wait_for_end(working)  # until then they still write
    kept = set(place.keys("noisy"))
    place.sweep(*READ)
    assert place.manifest()["requests"]["executed"] == len(said(read)) - len(kept)
    assert_as(place, read)
