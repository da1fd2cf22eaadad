"""Processes killed for real in the middle of generating; the result must be that of an undisturbed run."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pandas.testing import assert_frame_equal

from cardiolens import tables
from tests.ray.conftest import ASKED, Place

pytestmark = pytest.mark.ray

FaultEnvironment = Callable[[str, str], dict[str, str]]
DEADLY = " left ventricular systolic"  # in the question of C10, and in no other
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
    assert_frame_equal(place.scores().to_pandas(), undisturbed.scores().to_pandas())  # NaN equals NaN
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


@pytest.mark.slow
def test_two_sweeps_at_once_lose_nothing(place: Place, undisturbed: Place) -> None:
    both = [place.start(*ASKED), place.start(*ASKED)]
    printed = [running.communicate(timeout=500)[0] for running in both]
    assert [running.returncode for running in both] == [0, 0], printed
    keys = place.completions()["request_key"].to_pylist()
    assert set(keys) == set(undisturbed.completions()["request_key"].to_pylist())
    twice = place.manifest()["duplicates"]
    assert sum(twice.values()) == len(keys) - len(set(keys))
    assert_as_undisturbed(place, undisturbed)


@pytest.fixture
def fault_environment(prepared: Place) -> FaultEnvironment:
    """The environment in which vLLM's own process dies or hangs at a prompt that holds a text."""
    from transformers import AutoTokenizer

    (folder,) = (prepared.root / "store" / "models").iterdir()
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def environment(fault: str, text: str) -> dict[str, str]:
        tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
        plugin = str(Path(__file__).parent / "plugin")
        return {"PYTHONPATH": plugin, "CARDIOLENS_TEST_FAULT": f"{fault}:{','.join(map(str, tokens))}"}

    return environment


def test_a_request_that_kills_the_engine_is_isolated_and_the_others_complete(
    place: Place, fault_environment: FaultEnvironment
) -> None:
    deadly = fault_environment("die", DEADLY)
    words = [*ASKED, "selector=[clinical]", "budget=[8]", "limit=1", "subtask=[C10,C12,L01]"]
    printed = place.sweep(*words, expect=1, **deadly)
    assert "1 failed" in printed
    assert "run the same command again" in printed
    ended = place.completions()
    (failed,) = ended.filter(pc.equal(ended["status"], "engine_error")).to_pylist()
    assert "killed the engine when asked alone" in failed["error"]
    requests = place.manifest()["requests"]
    assert requests["ok"] == requests["unique"] - 1
    assert requests["error"] == 1
    place.sweep(*words)
    assert place.manifest()["requests"]["executed"] == 1, "only the failed one is tried again"
    assert place.manifest()["requests"]["error"] == 0


def test_an_engine_that_hangs_ends_the_run_with_a_true_error(
    place: Place, fault_environment: FaultEnvironment
) -> None:
    words = [
        *ASKED,
        "selector=[clinical]",
        "budget=[8]",
        "limit=1",
        "subtask=[C10]",
        "stream.stall_seconds=60",
    ]
    printed = place.sweep(*words, expect=1, **fault_environment("hang", DEADLY))
    assert "no request was completed for 60 s" in printed
    assert "Traceback" not in printed


def test_a_store_that_cannot_be_written_is_one_clear_error(place: Place) -> None:
    (place.root / "file").write_text("")
    printed = place.sweep(*ASKED, f"outputs={place.root}/file/outputs", expect=1)
    assert "cannot be written" in printed
    assert "Traceback" not in printed
