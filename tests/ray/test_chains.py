"""Chains on Ray and vLLM: a later stage holds what the model said, and a killed sweep goes on from there."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow.compute as pc
import pytest

from cardiolens.protocol.dialogue.chain_tables import read_chains, walk
from cardiolens.storage import schemas, tables
from tests.ray.conftest import Place
from tests.ray.processes import WORKING, command_line, descendants, wait_for_end
from tests.support.cases.example_cases import make_cases

pytestmark = [pytest.mark.ray, pytest.mark.long]

N = 6
CHAINS = [
    "+experiment=medthinkvqa",
    "name=chains",
    "model=[tiny]",
    "+model.tiny.max_tokens.twi_self=48",
    "selector=[uniform]",
    "budget=[3]",
    "prompt=[twi_self]",
    "+model.tiny.max_tokens.step=48",
    "+prompt.twi_self.asks_back=false",  # the model writes gibberish
    "tracker=none",
    "stream.flush_rows=1",
]


class Cases(Place):
    """A working directory with cases of MedThinkVQA."""

    def command(self, *words: str) -> list[str]:
        where = [f"dataset.source={self.data}", f"store={self.root}/store", f"outputs={self.root}/outputs"]
        return [sys.executable, "-m", "cardiolens.sweep", *CHAINS, *where, *words]


@pytest.fixture
def cases(tmp_path: Path) -> Cases:
    make_cases(tmp_path / "cases", N, 1)
    return Cases(tmp_path, tmp_path / "cases")


def wait_for_rows(place: Place, running: "subprocess.Popen[str]", rows: int) -> None:
    deadline = time.monotonic() + 1500
    while place.completions().num_rows < rows:
        assert running.poll() is None, running.communicate()[0]
        assert time.monotonic() < deadline, "no completions"
        time.sleep(0.02)


def kill_all(running: "subprocess.Popen[str]") -> None:
    """Kill a driver; its engine stands still until the workers are gone, or it would answer all they hold."""
    working = [pid for pid in descendants(running.pid) if command_line(pid).startswith(WORKING)]
    engines = [pid for pid in working if command_line(pid).startswith("VLLM::")]
    assert engines
    for pid in engines:
        os.kill(pid, signal.SIGSTOP)
    running.kill()
    running.communicate()
    wait_for_end([pid for pid in working if pid not in engines])
    for pid in engines:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    wait_for_end(engines)


def test_a_killed_sweep_of_chains_goes_on_with_the_stages_that_it_has_not(cases: Cases) -> None:
    running = cases.start()
    try:
        wait_for_rows(cases, running, 2)
    finally:
        kill_all(running)
    kept = set(cases.completions()["request_key"].to_pylist())
    assert 0 < len(kept) < 4 * N
    cases.sweep()
    ended = cases.completions()
    keys = ended["request_key"].to_pylist()
    assert len(keys) == len(set(keys)) == 4 * N, "three stages and the chain's own row, each once"
    assert cases.completion_folder is not None
    steps = walk(read_chains(cases.run / "requests" / "tiny"), cases.completion_folder)
    assert Counter(step.stage for step in steps) == {0: N, 1: N, 2: N}
    assert all(step.completion for step in steps)
    manifest = cases.manifest()
    done = Counter(step.stage + 1 for step in steps if step.request_key in kept)
    executed = {stage["stage"]: stage["executed"] for stage in manifest["stages"]}
    assert executed == {stage: N - done[stage] for stage in (1, 2, 3)}
    assert manifest["requests"]["ok"] == N
    whole = ended.filter(pc.is_in(ended["request_key"], pc.unique(asked(cases))))
    told = [sum(step.completion[name] for step in steps) for name in ("prompt_tokens", "output_tokens")]
    assert told == [pc.sum(whole[name]).as_py() for name in ("prompt_tokens", "output_tokens")]


def asked(place: Place) -> tables.pa.ChunkedArray:
    return tables.read(place.run / "requests" / "tiny", schemas.REQUESTS, ("request_key",))["request_key"]
