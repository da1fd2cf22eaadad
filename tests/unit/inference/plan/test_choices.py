"""The plan of readers that choose their frames: its tokens are a bound on every prompt of the chain."""

import json

import pytest
from small_cohort import make_cohort, sweep_spec

from cardiolens.inference.models import embedded
from cardiolens.inference.models.chat import Chat
from cardiolens.inference.plan.plan import plan
from cardiolens.protocol.dialogue.chain_tables import read_chains
from cardiolens.storage import schemas, tables

K = 4


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = make_cohort(tmp_path_factory.mktemp("choices"), 1)
    embedded.build(folder / "model")
    return folder


def spec_of(root, max_model_len):
    model = {
        "name": "tiny",
        "engine": "vllm",
        "source": str(root / "model"),
        "max_model_len": max_model_len,
        "long_side": 64,
        "max_tokens": {"standard": 16},
    }
    return sweep_spec(root, model, selector=[{"name": "self", "kind": "self"}], budget=[K], subtask=["C10"])


def test_no_prompt_of_a_chain_is_longer_than_planned(root):
    spec = spec_of(root, 8192)
    planned = plan(spec)
    (request,) = tables.read(planned.run.requests("tiny"), schemas.REQUESTS).to_pylist()
    assert request["status"] == schemas.PLANNED
    (chain,) = read_chains(planned.run.requests("tiny")).values()
    names = [frame.name for frame in chain.offer.frames]
    chat = Chat.of(spec.model[0], root / "model")
    nothing = json.dumps({"frames": ["x" * 100] * 50})
    for replies in ([], [nothing], [json.dumps({"frames": names[: K - 1]})], [json.dumps({"frames": names})]):
        coming = chain.next_request(replies)
        tokens = chat.count(request["system"], coming.prompt, ((64, 64),) * len(coming.frames))
        assert 0 < tokens <= request["predicted_tokens"]
        assert coming.max_tokens <= max(chain.ask_max_tokens, chain.max_tokens)


def test_what_would_not_fit_with_the_most_frames_overflows(root):
    planned = plan(spec_of(root, 512))
    assert planned.overflow == 1
    assert read_chains(planned.run.requests("tiny")) == {}
