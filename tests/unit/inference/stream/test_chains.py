"""Chains: each stage is rendered and keyed from the replies before it, asked once, and found again."""

import asyncio
import shutil
from collections import Counter

import pyarrow as pa
import pytest
from chain_cohort import SELF, Scribe, make_cohort, spec_of
from hypothesis import given, settings
from hypothesis import strategies as st
from small_cohort import swept

from cardiolens.base.errors import InputError
from cardiolens.inference.engine.ask import Ask
from cardiolens.inference.engine.readers import Constant
from cardiolens.inference.engine.supervisor import Supervisor
from cardiolens.inference.stream.chain_walk import Walk
from cardiolens.protocol.dialogue.chain import Stage, Steps, key_of, mark, prompt_of
from cardiolens.protocol.dialogue.chain_tables import read_chains, walk
from cardiolens.protocol.tasks.legal import FREE
from cardiolens.storage import schemas, tables

N = 3


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return make_cohort(tmp_path_factory.mktemp("chains"), N)


@pytest.fixture
def fresh(root):
    shutil.rmtree(root / "store" / "completions", ignore_errors=True)
    return root


def stored(planned):
    (identity,) = planned.identities.values()
    return planned.store.completions(identity.model_key)


def texts_of(completions):
    rows = tables.read(completions, schemas.COMPLETIONS).to_pylist()
    return {row["request_key"]: row["text"] for row in rows}


def requests_of(planned):
    return tables.read(planned.run.requests("uniform"), schemas.REQUESTS).to_pylist()


def test_each_stage_holds_the_replies_before_it(fresh):
    scribe = Scribe()
    planned, judged = swept(spec_of(fresh), scribe)
    assert judged.replies.counts["ok"] == N
    assert judged.replies.unrequested == 0
    assert len(scribe.asked) == 3 * N
    by_key = {ask.request_key: ask for ask in scribe.asked}
    assert len(by_key) == 3 * N
    steps = walk(read_chains(planned.run.requests("uniform")), stored(planned))
    assert Counter(step.stage for step in steps) == {0: N, 1: N, 2: N}
    for request in requests_of(planned):
        first, second, last = [by_key[s.request_key] for s in steps if s.chain == request["request_key"]]
        assert first.frame_keys == second.frame_keys == last.frame_keys
        assert f"said 1 to {first.request_key}" in second.text
        assert f"said 1 to {first.request_key}" in last.text
        assert f"said 2 to {second.request_key}" in last.text
        shared = first.text[: first.text.rindex(schemas.FRAME)]
        assert second.text.startswith(shared)
        assert last.text.startswith(shared)
        for ask in (first, second, last):
            assert ask.text.count(schemas.FRAME) == len(request["frames"])


def test_the_row_of_a_chain_is_its_last_reply_and_what_all_stages_cost(fresh):
    planned, _ = swept(spec_of(fresh), Scribe())
    wanted = {request["request_key"] for request in requests_of(planned)}
    rows = tables.read(stored(planned), schemas.COMPLETIONS).to_pylist()
    of_chains = [row for row in rows if row["request_key"] in wanted]
    assert len(of_chains) == N
    assert {(row["text"], row["prompt_tokens"], row["output_tokens"]) for row in of_chains} == {
        ("ANSWER: A", 30, 3)
    }


@pytest.mark.parametrize("how", ["refused", "failed"])
@pytest.mark.parametrize("ends", ["1", "3"])
def test_a_stage_that_ends_a_chain_is_seen_in_its_verdict(fresh, ends, how):
    planned, judged = swept(spec_of(fresh), Scribe(ends, how))
    status, parse_status = zip(
        *((row["status"], row["parse_status"]) for row in judged.replies.verdicts.to_pylist()), strict=True
    )
    assert len(status) == N
    wanted = {request["request_key"] for request in requests_of(planned)}
    rows = tables.read(stored(planned), schemas.COMPLETIONS).to_pylist()
    ended = {(row["status"], row["error"]) for row in rows if row["request_key"] in wanted}
    if how == "refused":
        assert ended == {("refused", f"stage {ends} of 3: refused")}
        assert (set(status), set(parse_status)) == ({"judged"}, {"refusal"})
        return
    assert ended == {("engine_error", f"stage {ends} of 3: no luck")}
    assert set(status) == {"engine_error"}
    again = Scribe()
    _, judged = swept(spec_of(fresh), again)
    assert judged.replies.counts["ok"] == N
    assert len(again.asked) == N * (4 - int(ends))  # stages before it are not asked again


@settings(max_examples=6, deadline=None)
@given(lost=st.data())
def test_whatever_rows_are_lost_the_same_tables_come_and_nothing_else_is_asked(root, lost):
    shutil.rmtree(root / "store" / "completions", ignore_errors=True)
    planned, whole = swept(spec_of(root), Scribe())
    table = tables.read(stored(planned), schemas.COMPLETIONS)
    keep = lost.draw(st.lists(st.booleans(), min_size=table.num_rows, max_size=table.num_rows))
    tables.replace(stored(planned), table.filter(pa.array(keep)), schemas.COMPLETIONS)
    chains = read_chains(planned.run.requests("uniform"))
    kept = {step.request_key for step in walk(chains, stored(planned)) if step.completion}
    again = Scribe()
    _, judged = swept(spec_of(root), again)
    assert judged.replies.verdicts.equals(whole.replies.verdicts)
    asked = [ask.request_key for ask in again.asked]
    assert len(asked) == len(set(asked))
    assert not kept & set(asked)
    # A chain that has its row is not gone again, so steps of it that were lost stay lost.
    before = {row["request_key"]: row["text"] for row in table.to_pylist()}
    assert texts_of(stored(planned)).items() <= before.items()


def test_chains_that_share_a_stage_ask_it_once(fresh):
    scribe = Scribe()
    longer = SELF | {"name": "longer", "max_tokens": 65}
    _, judged = swept(spec_of(fresh, SELF, longer), scribe)
    assert judged.replies.counts["ok"] == 2 * N
    assert len(scribe.asked) == 4 * N  # two steps are shared, the answers are not


@settings(max_examples=30)
@given(st.lists(st.text(max_size=9), min_size=2, max_size=2))
def test_no_reply_is_taken_for_a_frame_or_a_mark(replies):
    stage = Stage(f"{schemas.FRAME} a {mark(0)} b {mark(1)} c", 8, "key")
    spoilt = [f"{mark(1)}{schemas.FRAME}{reply}" for reply in replies]
    said = prompt_of(stage, spoilt)
    assert said.count(schemas.FRAME) == 1
    assert said == prompt_of(stage, ["1" + reply for reply in replies])
    assert key_of(stage, spoilt) == key_of(stage, ["1" + reply for reply in replies])


@given(st.lists(st.text(alphabet="ab", max_size=3), min_size=1, max_size=3))
def test_keys_differ_where_replies_do(replies):
    stage = Stage("x", 8, "key")
    assert key_of(stage, replies) != key_of(stage, [*replies[:-1], replies[-1] + "c"])
    assert key_of(stage, replies) != key_of(stage, [*replies, ""])
    assert key_of(stage, []) == "key"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"control": ["none", "blind"]}, "control blind shows none"),
        ({"dataset": {"name": "x", "studies": "x", "questions": "x"}}, "dataset=medthinkvqa"),
    ],
)
def test_what_cannot_be_a_chain_is_refused(root, changed, said):
    with pytest.raises(InputError, match=said):
        spec_of(root, **changed)


def test_a_chain_goes_on_before_others_begin_and_none_waits_for_all(root):
    """One slot: caches hold what a chain has shown, so few chains are open at once."""
    asked = asyncio.run(order_with_one_slot(8))
    first = {number: at for at, (number, stage) in enumerate(asked) if stage == 0}
    last = {number: at for at, (number, stage) in enumerate(asked) if stage == 2}
    for at in range(len(asked)):
        assert sum(first[number] < at < last[number] for number in first) <= 2


class Slower(Constant):
    """Reader that takes longer than a chain needs to render its next stage, in turns of the event loop."""

    async def answer(self, ask, pictures):
        for _ in range(20):
            await asyncio.sleep(0)
        return await super().answer(ask, pictures)


async def order_with_one_slot(n_chains):
    """Number and stage of the requests of chains of three stages, in the order in which they are answered."""
    supervisor, asked = Supervisor(Slower("A"), 1, 0), []

    async def go(number):
        async def step(ask, stage):
            reply = await supervisor.answer(ask, lambda key: None, goes_on=stage > 0)
            asked.append((number, stage))
            return {"status": "ok", "text": reply.text}, None

        stages = tuple(Stage(f"{number}", 8, f"{number}-{stage}") for stage in range(3))
        await Walk({}, step, keys_of=none_to_choose).go(ask_named(f"chain {number}"), Steps(stages))

    await asyncio.gather(*map(go, range(n_chains)))
    return asked


async def none_to_choose(places):
    raise AssertionError("these chains show the same frames throughout")


def ask_named(key):
    return Ask(key, "system", "text", (), "single", ("A",), 8, FREE)
