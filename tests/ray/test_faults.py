"""Processes killed for real in the middle of generating; the result must be that of an undisturbed run."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from cardiolens import tables
from tests.ray.conftest import ASKED, Place

pytestmark = pytest.mark.ray

WORKING = ("ray::Map", "VLLM::")


def wait_for_completions(place: Place, running: "subprocess.Popen[str]", parts: int = 2) -> None:
    """Until some completions are on disk."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        folder = place.completion_folder
        if folder is not None and len(tables.parts(folder)) >= parts:
            return
        assert running.poll() is None, running.communicate()[0]
        time.sleep(0.05)
    raise AssertionError("no completions within 300 s")


def descendants(pid: int) -> list[int]:
    """Children of every thread, and theirs."""
    children = [
        int(child)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for child in task.read_text().split()
    ]
    return [found for child in children for found in (child, *descendants(child))]


def process(root: int, name: str) -> int:
    """The one process below `root` whose command line begins with a name."""
    found = [pid for pid in descendants(root) if command_line(pid).startswith(name)]
    assert found, [command_line(pid) for pid in descendants(root)]
    return found[0]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def wait_for_end(pids: list[int]) -> None:
    """No process that computes, or holds a GPU, outlives its driver."""
    deadline = time.monotonic() + 60
    while left := [command_line(pid) for pid in pids if command_line(pid).startswith(WORKING)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def assert_as_undisturbed(place: Place, undisturbed: Place) -> None:
    assert place.scores().drop_columns(["method"]).equals(undisturbed.scores().drop_columns(["method"]))
    assert place.manifest()["requests"]["unique"] == undisturbed.manifest()["requests"]["unique"]
    assert place.manifest()["requests"]["error"] == 0


def test_a_killed_driver_loses_only_what_was_in_flight(place: Place, undisturbed: Place) -> None:
    running = place.start(*ASKED)
    wait_for_completions(place, running)
    working = [pid for pid in descendants(running.pid) if command_line(pid).startswith(WORKING)]
    assert len(working) >= 2
    running.kill()
    running.communicate()
    wait_for_end(working)
    kept = set(place.completions()["request_key"].to_pylist())
    place.sweep(*ASKED)
    unique = place.manifest()["requests"]["unique"]
    assert 0 < len(kept) < unique
    assert place.manifest()["requests"]["executed"] == unique - len(kept)
    keys = place.completions()["request_key"].to_pylist()
    assert len(keys) == len(set(keys)) == unique
    assert_as_undisturbed(place, undisturbed)


@pytest.mark.parametrize("victim", ["ray::MapWorker", "VLLM::EngineCore"])
def test_a_killed_worker_or_engine_is_replaced_within_the_run(
    place: Place, undisturbed: Place, victim: str
) -> None:
    running = place.start(*ASKED)
    wait_for_completions(place, running)
    os.kill(process(running.pid, victim), signal.SIGKILL)
    printed, _ = running.communicate(timeout=500)
    assert running.returncode == 0, printed
    keys = place.completions()["request_key"].to_pylist()
    unique = place.manifest()["requests"]["unique"]
    assert set(keys) == set(undisturbed.completions()["request_key"].to_pylist())
    assert len(keys) - unique <= 16 * 2, "no more than what was not yet written is asked twice"
    assert_as_undisturbed(place, undisturbed)


def test_two_sweeps_at_once_lose_nothing(place: Place, undisturbed: Place) -> None:
    both = [place.start(*ASKED), place.start(*ASKED)]
    printed = [running.communicate(timeout=500)[0] for running in both]
    assert [running.returncode for running in both] == [0, 0], printed
    keys = place.completions()["request_key"].to_pylist()
    assert set(keys) == set(undisturbed.completions()["request_key"].to_pylist())
    twice = place.manifest()["duplicates"]
    assert sum(twice.values()) == len(keys) - len(set(keys))
    assert_as_undisturbed(place, undisturbed)
