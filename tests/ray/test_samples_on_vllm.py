"""Samples on Ray and vLLM: seeds draw other replies, and more samples ask only for those that are new."""

import json
from collections import Counter

import pytest

from cardiolens.protocol.dialogue.chain import SAMPLED, Samples, samples_of
from cardiolens.protocol.dialogue.chain_tables import read_chains
from cardiolens.storage import schemas, tables
from tests.ray.conftest import Place

pytestmark = [pytest.mark.ray, pytest.mark.long]

WORDS = [
    "name=sampled",
    "model=[tiny]",
    "model.tiny.max_tokens.standard=24",
    "+model.tiny.max_tokens.majority=24",
    "selector=[clinical]",
    "budget=[4]",
    "subtask=[C01,L01,D01]",
    "prompt=[standard,majority]",
    "+model.tiny.sampling.temperature=1.0",
    "tracker=none",
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
        assert said == [three[coming.request_key]["text"] for coming in chain.requests]
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
