"""Chains on Ray and vLLM: a later stage holds what the model said, and a killed sweep goes on from there."""

import sys
from collections import Counter
from pathlib import Path

import pyarrow.compute as pc
import pytest

from cardiolens.protocol.dialogue.chain_tables import read_chains, walk
from cardiolens.storage import schemas, tables
from tests.ray.conftest import Place
from tests.ray.processes import kill_with_engines
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


def test_a_killed_sweep_of_chains_goes_on_with_the_stages_that_it_has_not(cases: Cases) -> None:
    running = cases.start()
    try:
        cases.wait_for_parts(running)
    finally:
        kill_with_engines(running)
    kept = set(cases.keys())
    assert 0 < len(kept) < 4 * N
    cases.sweep()
    ended, keys = cases.completions(), cases.keys()
    assert len(keys) == len(set(keys)) == 4 * N, "three stages and the chain's own row, each once"
    (folder,) = (cases.root / "store" / "completions").iterdir()
    steps = walk(read_chains(cases.run / "requests" / "tiny"), folder)
    assert Counter(step.stage for step in steps) == {0: N, 1: N, 2: N}
    assert all(step.completion for step in steps)
    manifest = cases.manifest()
    done = Counter(step.stage + 1 for step in steps if step.request_key in kept)
    executed = {stage["stage"]: stage["executed"] for stage in manifest["stages"]}
    assert executed == {stage: N - done[stage] for stage in (1, 2, 3)}
    assert manifest["requests"]["ok"] == N
    asked = tables.read(cases.run / "requests" / "tiny", schemas.REQUESTS)["request_key"]
    whole = ended.filter(pc.is_in(ended["request_key"], pc.unique(asked)))
    told = [sum(step.completion[name] for step in steps) for name in ("prompt_tokens", "output_tokens")]
    assert told == [pc.sum(whole[name]).as_py() for name in ("prompt_tokens", "output_tokens")]
