"""Chains: each stage is rendered and keyed from the replies before it, asked once, and counted."""

import json
import shutil
from collections import Counter

import pytest
from chain_cohort import SELF, Scribe, check_lost_rows, make_cohort, spec_of
from hypothesis import given, settings
from hypothesis import strategies as st
from killed_sweeps import kill, said
from small_cohort import answer, requests_of, stored, swept

from cardiolens.base.errors import InputError, RunError
from cardiolens.inference.engine.ask import Ask, Engine, Numerics, Pictures, Reply
from cardiolens.inference.placement.placement import Placement
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.stream.execution import Executed
from cardiolens.inference.stream.pipeline import Streamed
from cardiolens.protocol.dialogue.chain import Stage, Steps, mark
from cardiolens.protocol.dialogue.chain_tables import read_chains, walk
from cardiolens.protocol.tasks.legal import FREE
from cardiolens.storage import documents, schemas, tables
from cardiolens.workflow.steps.conclude import conclude
from cardiolens.workflow.steps.preparation import Prepared

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


@pytest.mark.full
@settings(max_examples=6, deadline=None)
@given(lost=st.data())
def test_whatever_rows_are_lost_the_same_tables_come_and_nothing_else_is_asked(root, lost):
    check_lost_rows(spec_of(root), Scribe, lost)


def after(stage, replies):
    """A stage with its key, as it is asked after these replies."""
    return Steps((stage,) * (len(replies) + 1)).next_request(replies)


@settings(max_examples=30)
@given(st.lists(st.text(max_size=9), min_size=2, max_size=2))
def test_no_reply_is_taken_for_a_frame_or_a_mark(replies):
    stage = Stage(f"{schemas.FRAME} a {mark(0)} b {mark(1)} c", 8, "key")
    spoilt = after(stage, [f"{mark(1)}{schemas.FRAME}{reply}" for reply in replies])
    assert spoilt.prompt.count(schemas.FRAME) == 1
    assert spoilt == after(stage, ["1" + reply for reply in replies])


@given(st.lists(st.text(alphabet="ab", max_size=3), min_size=1, max_size=3))
def test_keys_differ_where_replies_do(replies):
    stage = Stage("x", 8, "key")
    assert after(stage, replies).key != after(stage, [*replies[:-1], replies[-1] + "c"]).key
    assert after(stage, replies).key != after(stage, [*replies, ""]).key
    assert after(stage, []).key == "key"


def test_only_the_last_reply_is_bound_to_the_legal_ones():
    chain = Steps((Stage("x", 8, "a"), Stage(mark(0), 8, "b")))
    assert chain.next_request([]).constraint == FREE
    assert chain.next_request(["seen"]).constraint is None
    assert chain.next_request(["seen", "A"]) is None


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


class Unreachable(Scribe):
    """Scribe whose server is gone after the first step, which was paid for."""

    async def answer(self, ask, pictures):
        if self.asked:
            raise RunError("cannot be reached")
        return await super().answer(ask, pictures)


def test_a_step_before_an_error_that_ends_the_run_is_on_disk(fresh):
    scribe = Unreachable()
    with pytest.raises(RunError, match="cannot be reached"):
        swept(spec_of(fresh, stream={"flush_seconds": 1800}), scribe)
    assert list(said(fresh)) == [ask.request_key for ask in scribe.asked]


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


LONGER = SELF | {"name": "longer", "max_tokens": 65}


def concluded(spec, scribe):
    """Sweep, and conclude as a sweep does; the exit code and the run."""
    planned = plan(spec)
    documents.write_configuration(planned.run, spec)
    counted = answer(planned, scribe)
    executed = Executed(streamed={name: Streamed(each, frozenset()) for name, each in counted.items()})
    return conclude(planned, Prepared({}, {}), Placement((), ()), executed), planned.run


def stages_of(run):
    """The stages in the manifest by number."""
    stages = json.loads(run.manifest.read_text())["stages"]
    return {stage.pop("stage"): stage for stage in stages}


def counts(asked, unique, executed, ok, **ends):
    numbers = {"asked": asked, "unique": unique, "executed": executed}
    return {"model": "uniform", **numbers, "ok": ok, "refused": 0, "failed": 0, **ends}


def test_each_stage_counts_what_it_asked_and_only_what_this_invocation_executed(fresh):
    code, run = concluded(spec_of(fresh), Scribe("2", "failed"))
    assert code == 1
    assert stages_of(run) == {1: counts(N, N, N, N), 2: counts(N, N, N, 0, failed=N)}
    code, run = concluded(spec_of(fresh), Scribe())
    assert code == 0
    assert stages_of(run) == {1: counts(N, N, 0, N), 2: counts(N, N, N, N), 3: counts(N, N, N, N)}
    manifest = json.loads(run.manifest.read_text())
    assert manifest["requests"]["executed"] == N
    assert manifest["tokens"] == {"prompt": 20 * N, "computed": 20 * N, "output": 2 * N}  # of two stages each
    concluded(spec_of(fresh), Scribe())
    assert [stage["executed"] for stage in stages_of(run).values()] == [0, 0, 0]


def test_a_stage_that_arms_share_is_asked_for_both_and_executed_once(fresh):
    _, run = concluded(spec_of(fresh, SELF, LONGER), Scribe())
    shared = counts(2 * N, N, N, N)
    assert stages_of(run) == {1: shared, 2: shared, 3: counts(2 * N, 2 * N, 2 * N, 2 * N)}


def test_an_arm_that_comes_later_executes_its_last_stage_alone(fresh):
    concluded(spec_of(fresh), Scribe())
    _, run = concluded(spec_of(fresh, SELF, LONGER), Scribe())
    shared = counts(2 * N, N, 0, N)
    assert stages_of(run) == {1: shared, 2: shared, 3: counts(2 * N, 2 * N, N, 2 * N)}


ONE = Numerics("vllm 0.32.0", "NVIDIA H200", "FLASH_ATTN", 2)
OTHER = ONE._replace(tensor_parallel=4)


class Computing(Engine):
    """An engine that knows how it computes, in turn in each of some ways."""

    def __init__(self, *ways: Numerics) -> None:
        self._ways, self._asked = ways, 0

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        self._asked += 1
        return Reply("ANSWER: A", "stop", numerics=self._ways[self._asked % len(self._ways)])


def test_one_way_to_compute_is_in_each_row_and_no_news_on_the_page(fresh):
    spec = spec_of(fresh)
    _, run = concluded(spec, Computing(ONE))
    (folder,) = (spec.store / "completions").iterdir()
    rows = tables.read(folder, schemas.COMPLETIONS, ONE._fields).to_pylist()
    assert len(rows) == 4 * N, "of each stage, and of the chain"
    assert {tuple(row.values()) for row in rows} == {ONE}
    assert json.loads(run.manifest.read_text())["numerics"] == {"uniform": [{**ONE._asdict(), "requests": N}]}
    assert "round differently" not in run.page.read_text()


def test_several_ways_are_counted_and_the_page_says_so(fresh):
    direct = {"name": "standard", "style": "standard", "max_tokens": 64}
    _, run = concluded(spec_of(fresh, direct), Computing(ONE, ONE, OTHER))
    found = json.loads(run.manifest.read_text())["numerics"]["uniform"]
    assert [(one["tensor_parallel"], one["requests"]) for one in found] == [(2, 2), (4, 1)]
    page = run.page.read_text()
    assert "The answers of uniform come from 2 ways to compute" in page
    assert "vllm 0.32.0, NVIDIA H200, FLASH_ATTN, tensor parallel 2 (2 requests)" in page
