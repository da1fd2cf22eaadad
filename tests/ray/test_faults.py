"""Processes killed for real in the middle of generating; the result must be that of an undisturbed run."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pandas.testing import assert_frame_equal

from tests.ray.conftest import ASKED, Place
from tests.ray.processes import process

pytestmark = [pytest.mark.ray, pytest.mark.full]

FaultEnvironment = Callable[..., dict[str, str]]
DEADLY = " left ventricular systolic"  # in the question of C10, and in no other
ONE = [*ASKED, "selector=[clinical]", "limit=1", "subtask=[C10]"]
ENHANCED = "Is there late gadolinium enhancement"  # in that of L01


def assert_as_undisturbed(place: Place, undisturbed: Place) -> None:
    assert_frame_equal(place.scores().to_pandas(), undisturbed.scores().to_pandas())  # NaN equals NaN
    assert place.manifest()["requests"]["unique"] == undisturbed.manifest()["requests"]["unique"]
    assert place.manifest()["requests"]["error"] == 0


def test_a_killed_engine_is_replaced_within_the_run(place: Place, undisturbed: Place) -> None:
    running = place.start(*ASKED)
    place.wait_for_parts(running)
    os.kill(process(running.pid, "VLLM::EngineCore"), signal.SIGKILL)
    printed, _ = running.communicate(timeout=1500)
    assert running.returncode == 0, printed
    assert "an engine died and was restarted" in printed
    keys = place.keys()
    requests = place.manifest()["requests"]
    assert len(set(keys)) == requests["unique"] == requests["ok"]
    assert len(keys) - requests["unique"] <= 16 * 2, "no more than what was not yet written is asked twice"
    assert_as_undisturbed(place, undisturbed)


@pytest.mark.long
def test_two_sweeps_at_once_lose_nothing(place: Place, undisturbed: Place) -> None:
    both = [place.start(*ASKED), place.start(*ASKED)]
    printed = [running.communicate(timeout=1500)[0] for running in both]
    assert [running.returncode for running in both] == [0, 0], printed
    keys = place.keys()
    assert set(keys) == set(undisturbed.keys())
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
    words = [*ONE, "subtask=[C10,C12,L01]"]
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
    hanging = fault_environment(hang=DEADLY)
    printed = place.sweep(*ONE, "stream.stall_seconds=15", expect=1, **hanging)
    assert "no request was completed for 135 s" in printed
    assert "Traceback" not in printed


@pytest.mark.long
def test_a_model_that_finds_no_memory_is_one_clear_error(
    place: Place, fault_environment: FaultEnvironment
) -> None:
    printed = place.sweep(*ONE, expect=1, **fault_environment(oom=""))
    assert "out of memory" in printed
    assert "Traceback" not in printed
