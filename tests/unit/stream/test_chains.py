"""Chains: each stage is rendered and keyed from the replies before it, asked once, and found again."""

import re
import shutil
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_cohort import reader, swept

from cardiolens import tables
from cardiolens.cases.files import Source, cases
from cardiolens.cases.group import prepare_cases
from cardiolens.cases.make import make_cases
from cardiolens.cases.told import write_cases
from cardiolens.config.sweep import parse
from cardiolens.engine.ask import ErrorKind, Reply, RequestError
from cardiolens.engine.readers import Reader
from cardiolens.errors import InputError
from cardiolens.plan.plan import plan
from cardiolens.record.chain import Stage, key_of, prompt_of, read_chains, walk
from cardiolens.record.coming import mark
from cardiolens.study.cohort import Cohort, write_cohort

N = 3
SELF = {"name": "twi_self", "style": "standard", "max_tokens": 64, "steps": "self"}
DIRECT = {"name": "direct", "style": "standard", "max_tokens": 64}


class Scribe(Reader):
    """Reader whose reply to a step names the step and the request; it can refuse or fail a step."""

    def __init__(self, ends="", how=""):
        self.asked = []
        self._ends, self._how = ends, how

    async def answer(self, ask, pictures):
        self.asked.append(ask)
        for key in ask.frame_keys:
            pictures(key)
        found = re.findall(r"Step (\d):", ask.text)
        step = found[-1] if "ANSWER" not in ask.text else "3"
        if step == self._ends and self._how == "failed":
            raise RequestError(ErrorKind.FAILED, "no luck")
        text = "ANSWER: A" if step == "3" else f"said {step} to {ask.request_key}"
        refused = step == self._ends and self._how == "refused"
        return Reply(text=text, finish_reason="stop", prompt_tokens=10, output_tokens=1, refused=refused)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chains")
    make_cases(folder, N, 1)
    source = Source.of(folder, "test")
    usable = [case for _, case in cases(source)]
    outcomes = prepare_cases(folder / "store", "part-0.parquet", source, usable, strict=True)
    write_cases(folder / "store" / "medthinkvqa.jsonl", source, usable)
    records = {one.name: one.record for one in outcomes}
    write_cohort(folder / "store", Cohort(window_pct=(1, 99), studies=records, failed={}))
    return folder


@pytest.fixture
def fresh(root):
    shutil.rmtree(root / "store" / "completions", ignore_errors=True)
    return root


def spec_of(root, *prompts, **changed):
    tree = {
        "name": "chains",
        "dataset": {
            "name": "medthinkvqa_test",
            "root": root,
            "studies": root,
            "questions": root / "store" / "medthinkvqa.jsonl",
            "protocol": "medthinkvqa-1",
        },
        "model": [reader("uniform")],
        "selector": [{"name": "uniform", "kind": "uniform"}],
        "budget": [3],
        "prompt": prompts or [SELF],
        "store": root / "store",
        "outputs": root / "outputs",
        "statistics": {"min_n": 1, "resamples": 50, "seed": 7},
    }
    return parse(tree | changed)


def stored(planned):
    (identity,) = planned.identities.values()
    return planned.store.completions(identity.model_key)


def texts_of(completions):
    rows = tables.read(completions, tables.COMPLETIONS).to_pylist()
    return {row["request_key"]: row["text"] for row in rows}


def requests_of(planned):
    return tables.read(planned.run.requests("uniform"), tables.REQUESTS).to_pylist()


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
        shared = first.text[: first.text.rindex(tables.FRAME)]
        assert second.text.startswith(shared)
        assert last.text.startswith(shared)
        for ask in (first, second, last):
            assert ask.text.count(tables.FRAME) == len(request["frames"])


def test_the_row_of_a_chain_is_its_last_reply_and_what_all_stages_cost(fresh):
    planned, _ = swept(spec_of(fresh), Scribe())
    wanted = {request["request_key"] for request in requests_of(planned)}
    rows = tables.read(stored(planned), tables.COMPLETIONS).to_pylist()
    of_chains = [row for row in rows if row["request_key"] in wanted]
    assert len(of_chains) == N
    assert {(row["text"], row["prompt_tokens"], row["output_tokens"]) for row in of_chains} == {
        ("ANSWER: A", 30, 3)
    }


@pytest.mark.parametrize("how", ["refused", "failed"])
@pytest.mark.parametrize("ends", ["1", "2", "3"])
def test_a_stage_that_ends_a_chain_is_seen_in_its_verdict(fresh, ends, how):
    planned, judged = swept(spec_of(fresh), Scribe(ends, how))
    status, parse_status = zip(
        *((row["status"], row["parse_status"]) for row in judged.replies.verdicts.to_pylist()), strict=True
    )
    assert len(status) == N
    if how == "refused":
        assert (set(status), set(parse_status)) == ({"judged"}, {"refusal"})
        return
    assert set(status) == {"engine_error"}
    wanted = {request["request_key"] for request in requests_of(planned)}
    rows = tables.read(stored(planned), tables.COMPLETIONS).to_pylist()
    errors = {row["error"] for row in rows if row["request_key"] in wanted}
    assert errors == {f"stage {ends} of 3: no luck"}
    again = Scribe()
    _, judged = swept(spec_of(fresh), again)
    assert judged.replies.counts["ok"] == N
    assert len(again.asked) == N * (4 - int(ends))  # stages before it are not asked again


@settings(max_examples=6, deadline=None)
@given(lost=st.data())
def test_whatever_rows_are_lost_the_same_tables_come_and_nothing_else_is_asked(root, lost):
    shutil.rmtree(root / "store" / "completions", ignore_errors=True)
    planned, whole = swept(spec_of(root), Scribe())
    table = tables.read(stored(planned), tables.COMPLETIONS)
    keep = lost.draw(st.lists(st.booleans(), min_size=table.num_rows, max_size=table.num_rows))
    tables.replace(stored(planned), table.filter(pa.array(keep)), tables.COMPLETIONS)
    chains = read_chains(planned.run.requests("uniform"))
    kept = {step.request_key for step in walk(chains, stored(planned)) if step.said}
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


def test_chains_change_no_request_that_stands_alone(fresh):
    alone = requests_of(plan(spec_of(fresh, DIRECT)))
    beside = requests_of(plan(spec_of(fresh, DIRECT, SELF)))
    assert [row for row in beside if row["arm_id"] == alone[0]["arm_id"]] == alone
    assert {row["stage"] for row in alone} == {0}
    assert read_chains(plan(spec_of(fresh, DIRECT)).run.requests("uniform")) == {}


@settings(max_examples=30)
@given(st.lists(st.text(max_size=9), min_size=2, max_size=2))
def test_no_reply_is_taken_for_a_frame_or_a_mark(replies):
    stage = Stage(f"{tables.FRAME} a {mark(0)} b {mark(1)} c", 8, "key")
    spoilt = [f"{mark(1)}{tables.FRAME}{reply}" for reply in replies]
    said = prompt_of(stage, spoilt)
    assert said.count(tables.FRAME) == 1
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
        ({"prompt": [SELF | {"gold": "findings"}]}, "choose one"),
        ({"dataset": {"name": "x", "studies": "x", "questions": "x"}}, "dataset=medthinkvqa"),
    ],
)
def test_what_cannot_be_a_chain_is_refused(root, changed, said):
    with pytest.raises(InputError, match=said):
        spec_of(root, **changed)
