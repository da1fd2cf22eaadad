"""Chains: each stage is rendered and keyed from the replies before it, asked once, and found again."""

import shutil
from collections import Counter

import pytest
from chain_cohort import Scribe, check_lost_rows, make_cohort, spec_of
from hypothesis import given, settings
from hypothesis import strategies as st
from killed_sweeps import kill, said
from small_cohort import requests_of, stored, swept

from cardiolens.base.errors import InputError
from cardiolens.protocol.dialogue.chain import Stage, key_of, mark, prompt_of
from cardiolens.protocol.dialogue.chain_tables import read_chains, walk
from cardiolens.storage import schemas, tables

N = 3


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return make_cohort(tmp_path_factory.mktemp("chains"), N)


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
    check_lost_rows(spec_of(root), Scribe, lost)


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


def test_a_chain_goes_on_before_others_begin(fresh):
    """One slot: the caches of an engine hold what a chain has shown, so it goes on at once."""
    scribe = Scribe()
    swept(spec_of(fresh), scribe, width=1)
    assert len(scribe.asked) == 3 * N
    for first, second in zip(scribe.asked[::3], scribe.asked[1::3], strict=True):
        assert f"said 1 to {first.request_key}" in second.text


# Parts of one row lie between the stages of a chain; parts of four hold stages of several chains.
@pytest.mark.full
@pytest.mark.parametrize(
    ("flush_rows", "moment", "at"),
    [
        (1, "asked", 5),
        (1, "writing", 4),
        (1, "written", 2),
        (1, "written", 3 * N),
        (4, "written", 1),
    ],
)
def test_a_killed_sweep_of_chains_asks_nothing_again_that_is_on_disk(fresh, flush_rows, moment, at):
    _, whole = swept(spec_of(fresh), Scribe())
    texts = said(fresh)
    shutil.rmtree(fresh / "store" / "completions")
    before = kill("chains", fresh, flush_rows, moment, at)
    kept = set(said(fresh))
    assert len(kept) < len(texts), "a whole run tells nothing"
    assert kept or moment == "asked"
    scribe = Scribe()
    _, judged = swept(spec_of(fresh), scribe)
    after = [ask.request_key for ask in scribe.asked]
    assert not kept & set(after)
    assert len(set(before)) == len(before)
    assert len(set(after)) == len(after)
    assert set(before) & set(after) == set(before) - kept, "in flight, and nothing else, is asked again"
    assert len(set(before) | set(after)) == 3 * N
    assert said(fresh) == texts
    assert judged.replies.verdicts.equals(whole.replies.verdicts)
