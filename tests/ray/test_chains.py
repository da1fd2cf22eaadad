"""Chains and samples on Ray and vLLM: a later stage holds what was said, and seeds draw other replies."""

import json
import sys
from collections import Counter
from pathlib import Path

import pyarrow.compute as pc
import pytest

from cardiolens.protocol.dialogue.chain import SAMPLED, Samples, samples_of
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


WORDS = [
    *("name=sampled", "model=[tiny]", "selector=[clinical]", "budget=[4]", "subtask=[C01,L01,D01]"),
    *("model.tiny.max_tokens.standard=24", "+model.tiny.max_tokens.majority=24"),
    *("prompt=[standard,majority]", "+model.tiny.sampling.temperature=1.0", "tracker=none"),
]


def kept(place: Place) -> dict[str, dict[str, object]]:
    rows = place.completions().to_pylist()
    assert len({row["request_key"] for row in rows}) == len(rows), "a request was answered twice"
    return {row["request_key"]: row for row in rows}


def test_samples_differ_are_repeatable_and_more_of_them_cost_only_the_new(place: Place) -> None:
    place.sweep(*WORDS, "prompt.majority.samples=3")
    three = kept(place)
    requests = place.run / "requests" / "tiny"
    chains = {key: chain for key, chain in read_chains(requests).items() if isinstance(chain, Samples)}
    assert chains
    for key, chain in chains.items():
        row = three[key]
        assert row["finish_reason"] == SAMPLED
        said = [one.text for one in samples_of(str(row["text"]))]
        assert said == [three[stage.key]["text"] for stage in chain.stages]
        assert len(said) == 3
    differing = Counter(len({one.text for one in samples_of(str(three[key]["text"]))}) for key in chains)
    assert differing[3] == len(chains), (
        "random weights at temperature 1 say the same twice only if a seed is shared"
    )
    n_alone = tables.read(requests, schemas.REQUESTS).num_rows - len(chains)
    assert len(three) == n_alone + 4 * len(chains)

    printed = place.sweep(*WORDS, "prompt.majority.samples=5", "name=more")
    five = kept(place)
    assert set(three) < set(five)
    assert {key: five[key]["text"] for key in three} == {key: row["text"] for key, row in three.items()}
    assert len(five) == len(three) + 3 * len(chains), "two samples and the row of five, for each question"
    (run,) = (place.root / "outputs").glob("more-*")
    manifest = json.loads((run / "manifest.json").read_text())
    assert [stage["executed"] for stage in manifest["stages"]] == [0, 0, 0, *[len(chains)] * 2], printed
