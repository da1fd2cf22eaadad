"""Readers that choose their frames: what is legal, shown, counted, and found again."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from chain_cohort import check_lost_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_engine import CHOOSES, greedily, illegally, lazily
from small_cohort import VIEWS, frame_rows, make_cohort, reader, requests_of, stored, sweep_spec, swept

from cardiolens.inference.engine.ask import FRAMES, Engine, ErrorKind, Reply, RequestError
from cardiolens.inference.models.chat import Chat
from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.plan.plan import plan
from cardiolens.protocol.dialogue import chain as chains
from cardiolens.protocol.dialogue.chain import Choice, Offer, OfferedFrame, mark
from cardiolens.protocol.dialogue.chain_tables import read_chains
from cardiolens.protocol.prompts.frame_request_prompt import FRAME_REQUESTS
from cardiolens.storage import schemas, tables
from tests.support.tiny_model import FOLDER

PATIENTS = 2

SELF = {"name": "self", "kind": "self"}
K = 4
N = 6  # frames of the offer of `choice`


def spec_of(root, *models, **changes):
    changes = {"selector": [SELF], "budget": [K], "subtask": ["C10", "C01"]} | changes
    return sweep_spec(root, *models or [reader("uniform")], **changes)


def seen_of(planned):
    found = {}
    for row in tables.read(planned.run.seen, schemas.SEEN).to_pylist():
        found.setdefault(row["request_key"], []).append(row)
    return found


def choice(budget=3, rounds=2):
    offer = tuple(OfferedFrame(f"cine_4ch phase {n + 1}", "cine_4ch", n, f" phase {n + 1}") for n in range(N))
    ask = f"{mark(chains.REFUSALS)}request {mark(chains.REQUEST_NUMBER)}, {mark(chains.N_LEFT)} left"
    many = f"{mark(chains.N_SHOWN)} frames: what?"
    return Choice(Offer("o", offer), budget, rounds, ask, ask, "one frame: what?", many, 90, 8, True, "key")


def naming(*numbers):
    return json.dumps({"frames": [f"cine_4ch phase {number}" for number in numbers]})


def gone(chain, replies):
    """The requests of a chain whose reader replies so, and how it ended."""
    said, asked = [], []
    while (coming := chain.next_request(said)) is not None:
        asked.append(coming)
        said.append(next(replies) if coming.asks_for_frames else "ANSWER: A")
    return asked, said


REPLIES = st.one_of(
    st.lists(st.integers(-2, N + 2), max_size=6).map(lambda numbers: naming(*numbers)),
    st.text(max_size=20),
    st.sampled_from(['{"frames": [1, null]}', '{"frames": "all"}', '{"frames": [', naming(1) * 2]),
)


@given(st.integers(1, N + 2), st.integers(1, 4), st.data())
def test_whatever_is_replied_the_chain_ends_and_shows_no_more_than_its_budget(budget, rounds, data):
    chain = choice(budget, rounds)
    asked, said = gone(chain, iter(lambda: data.draw(REPLIES), None))
    assert 1 <= len(asked) <= rounds + 1 == chain.most_stages
    for coming in asked:
        assert len(coming.frames) <= min(budget, N)
        assert len(set(coming.frames)) == len(coming.frames)
        assert coming.prompt.count(schemas.FRAME) == len(coming.frames)
        assert all(place.idx in range(N) for place in coming.frames)
        assert list(coming.frames) == sorted(coming.frames)
    for before, after in pairwise(asked):
        assert set(before.frames) <= set(after.frames)
    answered = not asked[-1].asks_for_frames
    assert bool(asked[-1].frames) or not answered
    assert (chain.failure(said) is None) == answered


@pytest.mark.parametrize(
    ("reply", "not_shown", "shown", "said"),
    [
        (naming(2, 5), 0, [1, 4], ""),
        (naming(2, 9), 1, [1], "'cine_4ch phase 9' is no frame on offer"),
        (naming(1, 2, 3, 4, 5), 2, [0, 1, 2], "is beyond the 3 frames"),
        (naming(), 1, [], "the list was empty"),
        ("I would like the first frame", 1, [], "no list of names"),
        ('{"frames": [" CINE_4ch   Phase 2"]}', 0, [1], ""),
        (f"For example {naming(1)}, but better {naming(3)}", 0, [2], ""),
    ],
)
def test_names_are_shown_or_counted_and_told(reply, not_shown, shown, said):
    asked = choice().after([reply])
    assert asked.not_shown == (not_shown,)
    assert sorted(asked.places) == shown
    assert said in asked.refusals
    if not shown:
        assert f"Not shown of your last request: {asked.refusals}" in choice().next_request([reply]).prompt


def test_of_a_hundred_names_that_there_are_not_a_few_are_repeated():
    wrong = json.dumps({"frames": [f"{mark(3)}{schemas.FRAME}{'x' * 500} {n}" for n in range(100)]})
    asked = choice().after([wrong])
    assert asked.not_shown == (100,)
    assert len(asked.refusals) < 700
    prompt = choice().next_request([wrong]).prompt
    assert schemas.FRAME not in prompt
    assert "and 95 more" in prompt


def test_keys_differ_where_the_chosen_frames_do_and_not_where_words_do():
    def answer(reply):
        return choice().next_request([reply, naming()]).key

    assert answer(naming(1, 2)) != answer(naming(1, 3))
    assert answer(naming(1, 2)) != answer(naming(1))
    assert answer(naming(1, 2)) == answer(f"Well: {naming(2, 1)}")
    assert answer(naming(1)) != choice().next_request([naming(1)]).key


def test_all_that_decides_what_may_be_chosen_is_declared_for_the_key():
    texts = dict.fromkeys(("first", "further", "answer_one", "answer_many", "stage_key"), "other")
    changes = {**texts, "budget": 4, "rounds": 3, "bound": False}
    declared = [replace(choice(), **{name: value}).declared for name, value in changes.items()]
    assert len({choice().declared, *declared}) == 1 + len(changes)


@pytest.mark.full
@given(st.lists(st.integers(0, N + 1), max_size=N), st.booleans())
def test_a_reply_that_decoding_allows_is_one_line_of_legal_names(numbers, again):
    said = [naming(2)] if again else []
    allowed = choice().next_request(said).constraint.naming
    fits = re.fullmatch(allowed.pattern, naming(*numbers)) is not None
    names = [f"cine_4ch phase {number}" for number in numbers]
    assert fits == (set(names) <= set(allowed.names) and allowed.least <= len(names) <= allowed.most)
    if fits:
        asked = choice().after([*said, naming(*numbers)])
        assert len(set(names)) == len(asked.places) - len(said)
    for white in (" ", "\n", "\t"):
        for place in range(len(naming(*numbers)) + 1):
            spread = naming(*numbers)[:place] + white + naming(*numbers)[place:]
            assert re.fullmatch(allowed.pattern, spread) is None


@pytest.mark.parametrize(
    ("chooses", "frames", "not_shown"),
    [(greedily, [0, K], [0]), (lazily, [0, 1, 1], [0, 0]), (illegally, [0, 0, K], [2, 0])],
)
def test_each_manner_is_shown_what_it_asked_for(fresh, monkeypatch, chooses, frames, not_shown):
    monkeypatch.setattr(CHOOSES, chooses)
    planned, judged = swept(spec_of(fresh, reader("oracle")))
    assert judged.replies.counts["ok"] == len(requests_of(planned))
    assert judged.replies.unrequested == 0
    assert {row["correct"] for row in judged.replies.verdicts.to_pylist()} == {True}
    seen = seen_of(planned)
    assert set(seen) == {request["request_key"] for request in requests_of(planned)}
    for stages in seen.values():
        assert [len(stage["frames"]) for stage in stages] == frames
        assert [stage["not_shown"] for stage in stages] == [*not_shown, None]
        assert {stage["status"] for stage in stages} == {"ok"}


def test_a_selection_that_stays_illegal_ends_with_its_status_and_is_not_asked_again(fresh):
    spec = spec_of(fresh, selector=[SELF])
    stubborn = Chooser("nothing of that kind")
    planned, judged = swept(spec, stubborn)
    n = len(requests_of(planned))
    assert judged.replies.counts["illegal_selection"] == n
    assert judged.replies.unfinished == judged.replies.unrequested == judged.replies.counts["ok"] == 0
    assert len(stubborn.asked) == n * FRAME_REQUESTS
    rows = judged.replies.verdicts.to_pylist()
    assert {(row["status"], row["parse_status"], row["rule"], row["correct"]) for row in rows} == {
        ("judged", "illegal_selection", "illegal_selection", False)
    }
    wanted = {request["request_key"] for request in requests_of(planned)}
    said = tables.read(stored(planned), schemas.COMPLETIONS).to_pylist()
    (error,) = {row["error"] for row in said if row["request_key"] in wanted}
    assert f"asked for no frame that there is in {FRAME_REQUESTS} requests" in error
    again = Chooser("nothing of that kind")
    swept(spec, again)
    assert again.asked == []


class Chooser(Engine):
    """Reader that replies to every request for frames with a text, or with frames by its question."""

    def __init__(self, text=None, fails=""):
        self.asked, self.shown = [], []
        self._text, self._fails = text, fails

    async def answer(self, ask, pictures):
        self.asked.append(ask)
        self.shown.append([pictures(key) for key in ask.frame_keys])
        if ask.answer_type != FRAMES:
            if self._fails == "answer":
                raise RequestError(ErrorKind.FAILED, "no luck")
            return Reply(text="ANSWER: A", finish_reason="stop", prompt_tokens=10)
        if self._fails == "refused":
            return Reply(text="no", finish_reason="stop", refused=True)
        names = ask.constraint.naming.names
        text = self._text or json.dumps({"frames": names[len(ask.text) % 7 :: 5][:2]})
        return Reply(text=text, finish_reason="stop", prompt_tokens=10)


def test_the_frames_that_were_chosen_are_those_that_the_engine_gets(fresh):
    chooser = Chooser()
    planned, _ = swept(spec_of(fresh), chooser)
    study = {request["request_key"]: request["study_id"] for request in requests_of(planned)}
    stages = [stage for stages in seen_of(planned).values() for stage in stages]
    wanted = {
        stage["step_key"]: [(study[stage["request_key"]], *frame.values()) for frame in stage["frames"]]
        for stage in stages
    }
    assert {len(frames) for frames in wanted.values()} == {0, 2, K}
    for ask, shown in zip(chooser.asked, chooser.shown, strict=True):
        assert ask.text.count(schemas.FRAME) == len(shown)
        for picture, place in zip(shown, wanted[ask.request_key], strict=True):
            assert np.array_equal(picture, rendered(*place))


def rendered(study_id, volume_id, idx):
    rows = frame_rows(study_id, volume_id, *VIEWS[volume_id]).to_pylist()
    return Rendering(8).apply(np.frombuffer(rows[idx]["pixels"], np.uint8).reshape(2, 2))


@pytest.mark.parametrize(
    ("fails", "status"), [("answer", "engine_error"), ("refused", "judged")], ids=["failed", "refused"]
)
def test_a_stage_that_fails_ends_its_chain(fresh, fails, status):
    planned, judged = swept(spec_of(fresh), Chooser(fails=fails))
    assert {row["status"] for row in judged.replies.verdicts.to_pylist()} == {status}
    again = Chooser()
    swept(spec_of(fresh), again)
    n = len(requests_of(planned))
    assert len(again.asked) == (n if fails == "answer" else 0)  # only the answers are asked again


@pytest.mark.full
@settings(max_examples=5, deadline=None)
@given(lost=st.data())
def test_whatever_rows_are_lost_the_same_tables_come_and_nothing_else_is_asked(root, lost):
    check_lost_rows(spec_of(root), Chooser, lost)


@pytest.fixture(scope="module")
def tiny_root(tmp_path_factory):
    return make_cohort(tmp_path_factory.mktemp("choices"), 1)


def tiny_spec(tiny_root, max_model_len):
    model = {"name": "tiny", "engine": "vllm", "source": "packaged/tiny", "long_side": 64}
    model |= {"max_model_len": max_model_len, "max_tokens": {"standard": 16}}
    return sweep_spec(tiny_root, model, selector=[SELF], budget=[K], subtask=["C10"])


def test_no_prompt_of_a_chain_is_longer_than_planned(tiny_root):
    spec = tiny_spec(tiny_root, 8192)
    planned = plan(spec)
    (request,) = requests_of(planned)
    assert request["status"] == schemas.PLANNED
    (chain,) = read_chains(planned.run.requests("tiny")).values()
    names = [frame.name for frame in chain.offer.frames]
    chat = Chat(FOLDER, spec.model[0])
    nothing = json.dumps({"frames": ["x" * 100] * 50})
    for replies in ([], [nothing], [json.dumps({"frames": names[: K - 1]})], [json.dumps({"frames": names})]):
        coming = chain.next_request(replies)
        tokens = chat.count(request["system"], coming.prompt, ((64, 64),) * len(coming.frames))
        assert 0 < tokens <= request["predicted_tokens"]
        assert coming.max_tokens <= max(chain.ask_max_tokens, chain.max_tokens)


def test_what_would_not_fit_with_the_most_frames_overflows(tiny_root):
    planned = plan(tiny_spec(tiny_root, 512))
    assert planned.overflow == 1
    assert read_chains(planned.run.requests("tiny")) == {}
