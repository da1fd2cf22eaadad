"""Processes killed for real in the middle of generating; the result must be that of an undisturbed run."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pandas.testing import assert_frame_equal

from cardiolens.storage import tables
from tests.ray.conftest import ASKED, Place
from tests.ray.processes import WORKING, command_line, descendants, process, wait_for_end

pytestmark = [pytest.mark.ray, pytest.mark.full]

FaultEnvironment = Callable[..., dict[str, str]]
DEADLY = " left ventricular systolic"  # in the question of C10, and in no other
ENHANCED = "Is there late gadolinium enhancement"  # in that of L01


def wait_for_completions(place: Place, running: "subprocess.Popen[str]", parts: int = 2) -> None:
    """Until some completions are on disk."""
    deadline = time.monotonic() + 1500
    while time.monotonic() < deadline:
        folder = place.completion_folder
        if folder is not None and len(tables.parts(folder)) >= parts:
            return
        assert running.poll() is None, running.communicate()[0]
        time.sleep(0.05)
    raise AssertionError("no completions within 300 s")


def assert_as_undisturbed(place: Place, undisturbed: Place) -> None:
    assert_frame_equal(place.scores().to_pandas(), undisturbed.scores().to_pandas())  # NaN equals NaN
    assert place.manifest()["requests"]["unique"] == undisturbed.manifest()["requests"]["unique"]
    assert place.manifest()["requests"]["error"] == 0


@pytest.mark.long
def test_a_killed_driver_loses_only_what_was_in_flight(place: Place, undisturbed: Place) -> None:
    running = place.start(*ASKED)
    wait_for_completions(place, running)
    working = [pid for pid in descendants(running.pid) if command_line(pid).startswith(WORKING)]
    assert len(working) >= 2
    # Ray takes seconds to end the workers of a dead driver, in which a small model would answer all that they
    # hold. Engines that stand still until the workers are gone keep the requests in flight.
    engines = [pid for pid in working if command_line(pid).startswith("VLLM::")]
    for pid in engines:
        os.kill(pid, signal.SIGSTOP)
    running.kill()
    running.communicate()
    wait_for_end([pid for pid in working if pid not in engines])
    for pid in engines:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    wait_for_end(engines)
    kept = set(place.completions()["request_key"].to_pylist())
    place.sweep(*ASKED)
    unique = place.manifest()["requests"]["unique"]
    assert 0 < len(kept) < unique
    assert place.manifest()["requests"]["executed"] == unique - len(kept)
    keys = place.completions()["request_key"].to_pylist()
    assert len(keys) == len(set(keys)) == unique
    assert_as_undisturbed(place, undisturbed)


def test_a_killed_engine_is_replaced_within_the_run(place: Place, undisturbed: Place) -> None:
    running = place.start(*ASKED)
    wait_for_completions(place, running)
    os.kill(process(running.pid, "VLLM::EngineCore"), signal.SIGKILL)
    printed, _ = running.communicate(timeout=500)
    assert running.returncode == 0, printed
    assert "an engine died and was restarted" in printed
    keys = place.completions()["request_key"].to_pylist()
    requests = place.manifest()["requests"]
    assert len(set(keys)) == requests["unique"] == requests["ok"]
    assert len(keys) - requests["unique"] <= 16 * 2, "no more than what was not yet written is asked twice"
    assert_as_undisturbed(place, undisturbed)


@pytest.mark.long
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
    """The environment in which faults happen, of those that the plugin of tests knows."""
    from transformers import AutoTokenizer

    (folder,) = (prepared.root / "store" / "models").iterdir()
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def environment(**faults: str) -> dict[str, str]:
        tokens = {text: tokenizer(text, add_special_tokens=False)["input_ids"] for text in faults.values()}
        told = ";".join(
            f"{fault}:{text if fault == 'silent' else ','.join(map(str, tokens[text]))}"
            for fault, text in faults.items()
        )
        plugin = Path(__file__).parent / "plugin"
        found = os.pathsep.join([str(plugin), *filter(None, [os.environ.get("PYTHONPATH")])])
        return {"PYTHONPATH": found, "CARDIOLENS_TEST_FAULT": told}

    return environment


@pytest.mark.long
def test_requests_that_kill_the_engine_or_get_no_output_are_isolated_and_the_others_complete(
    place: Place, fault_environment: FaultEnvironment
) -> None:
    words = [*ASKED, "selector=[clinical]", "budget=[8]", "limit=1", "subtask=[C10,C12,L01]"]
    printed = place.sweep(*words, expect=1, **fault_environment(die=DEADLY, silent=ENHANCED))
    assert "2 failed" in printed
    assert "run the same command again" in printed
    ended = place.completions()
    failed = ended.filter(pc.equal(ended["status"], "engine_error"))["error"].to_pylist()
    assert sum("killed the engine when asked alone" in error for error in failed) == 1
    assert sum("ended the request without an output" in error for error in failed) == 1
    requests = place.manifest()["requests"]
    assert requests["ok"] == requests["unique"] - 2
    assert requests["error"] == 2
    place.sweep(*words)
    assert place.manifest()["requests"]["executed"] == 2, "only the failed ones are tried again"
    assert place.manifest()["requests"]["error"] == 0


@pytest.mark.long
def test_an_engine_that_hangs_ends_the_run_with_a_true_error(
    place: Place, fault_environment: FaultEnvironment
) -> None:
    words = [
        *ASKED,
        "selector=[clinical]",
        "budget=[8]",
        "limit=1",
        "subtask=[C10]",
        "stream.stall_seconds=15",
    ]
    printed = place.sweep(*words, expect=1, **fault_environment(hang=DEADLY))
    assert "no request was completed for 135 s" in printed
    assert "Traceback" not in printed


@pytest.mark.long
def test_a_model_that_finds_no_memory_is_one_clear_error(
    place: Place, fault_environment: FaultEnvironment
) -> None:
    words = [*ASKED, "selector=[clinical]", "budget=[8]", "limit=1", "subtask=[C10]"]
    printed = place.sweep(*words, expect=1, **fault_environment(oom=""))
    assert "out of memory" in printed
    assert "Traceback" not in printed
