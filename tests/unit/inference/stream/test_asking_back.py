"""Asking back: a reply that cannot be read is quoted to its model, which gives its letters."""

import shutil
from dataclasses import replace

import chain_cohort
import pytest
from chain_cohort import Scribe
from killed_sweeps import kill, said
from mumbler import PROSE, Mumbler, asking_spec, is_second
from small_cohort import swept

from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.plan.plan import plan
from cardiolens.score.statistics.confidence import AUROC
from cardiolens.storage import schemas, tables

PATIENTS = 3


def answered(judged):
    rows = judged.replies.verdicts.to_pylist()
    return [row for row in rows if row["answer_type"] != "report"]


def test_what_cannot_be_read_is_asked_back_and_counts_by_the_second_turn(fresh):
    mumbler = Mumbler(prose=8, silent=4)
    planned, judged = swept(asking_spec(fresh), mumbler)
    rows, first = answered(judged), {ask.request_key: ask for ask in mumbler.asked}
    statuses = {row["request_key"]: row["parse_status"] for row in rows}
    prose = [
        ask for ask in mumbler.asked if "You replied:" not in ask.text and int(ask.request_key[0], 16) < 8
    ]
    assert len(mumbler.second) == len([ask for ask in prose if ask.option_keys]) > 20
    for ask in mumbler.second:
        alike = [one for one in first.values() if one.frame_keys == ask.frame_keys and one is not ask]
        (origin,) = [one for one in alike if ask.text.startswith(one.text)]
        expected = "no_answer" if int(ask.request_key[0], 16) < 4 else "asked_back"
        assert statuses[origin.request_key] == expected
    assert {row["parse_status"] for row in rows} == {"ok", "asked_back", "no_answer"}
    for row in rows:
        assert (row["parsed"] == []) == (row["parse_status"] == "no_answer")
    counts = judged.replies.counts
    n_none = sum(int(ask.request_key[0], 16) < 4 for ask in mumbler.second)
    assert counts["second_none"] == n_none > 0
    assert counts["second_answered"] == len(mumbler.second) - n_none
    assert counts["second_open"] == judged.replies.unrequested == 0
    seen = tables.read(planned.run.seen, schemas.SEEN).to_pylist()
    assert {row["step_key"] for row in seen} == {ask.request_key for ask in mumbler.second}
    assert {row["stage"] for row in seen} == {1}
    metrics = judged.scores["metric"].to_pylist()
    assert not any(metric.startswith(AUROC) for metric in metrics), "a forced letter is no confidence"


def test_a_free_second_reply_is_read_strictly(fresh):
    _, judged = swept(asking_spec(fresh), Mumbler(prose=16, silent=4, constrained=False))
    assert {row["parse_status"] for row in answered(judged)} == {"asked_back", "no_answer"}


def test_stored_first_replies_are_asked_back_and_not_asked_again(fresh):
    before = Mumbler()
    _, judged = swept(asking_spec(fresh, asks_back=False), before)
    assert not before.second
    assert {row["parse_status"] for row in answered(judged)} == {"ok", "parse_error"}
    after = Mumbler()
    planned = plan(asking_spec(fresh))
    work = missing_of(planned, "uniform")
    _, judged = swept(asking_spec(fresh), after)
    assert {ask.request_key for ask in before.asked} == said(fresh).keys() - {
        ask.request_key for ask in after.asked
    }
    assert after.asked == after.second != []
    assert work.left == work.second_turns == len(after.second)
    assert {row["parse_status"] for row in answered(judged)} == {"ok", "asked_back"}
    again = Mumbler()
    _, same = swept(asking_spec(fresh), again)
    assert again.asked == []
    assert same.replies.verdicts.equals(judged.replies.verdicts)


@pytest.mark.full
def test_a_sweep_killed_between_the_turns_loses_nothing_and_asks_nothing_twice(fresh):
    undisturbed = Mumbler(prose=16)
    _, judged = swept(asking_spec(fresh, limit=1), undisturbed)
    whole, second = set(said(fresh)), {ask.request_key for ask in undisturbed.second}
    shutil.rmtree(fresh / "store" / "completions")
    kept, between = set(), 0
    for flush_rows, moment, at in ((4, "written", 4), (1, "written", 9), (1, "asked", 5)):
        asked = kill("asking", fresh, flush_rows, moment, at)
        assert not kept & set(asked)
        assert len(set(asked)) == len(asked)
        kept = set(said(fresh))
        work = missing_of(plan(asking_spec(fresh, limit=1)), "uniform")
        between += len(work.read_back)
    assert between, "one of the kills fell between two turns"
    assert kept < whole
    last = Mumbler(prose=16)
    _, again = swept(asking_spec(fresh, limit=1), last)
    assert not kept & {ask.request_key for ask in last.asked}
    assert kept | {ask.request_key for ask in last.asked} == set(said(fresh)) == whole
    assert second <= whole
    assert again.replies.verdicts.equals(judged.replies.verdicts)


class Prosaic(Scribe):
    """Scribe whose answer is prose until it is asked back."""

    async def answer(self, ask, pictures):
        reply = await super().answer(ask, pictures)
        if is_second(ask):
            return replace(reply, text="B")
        return replace(reply, text=PROSE) if reply.text == "ANSWER: A" else reply


def test_a_chain_is_asked_back_after_its_last_stage(tmp_path):
    root = chain_cohort.make_cohort(tmp_path, 2)
    once = {**chain_cohort.SELF, "name": "once", "asks_back": False}
    first = Prosaic()
    swept(chain_cohort.spec_of(root, once), first)
    scribe = Prosaic()
    _, judged = swept(chain_cohort.spec_of(root, chain_cohort.SELF), scribe)
    answers = [ask for ask in first.asked if "ANSWER" in ask.text]
    assert all(any(ask.text.startswith(one.text) for one in answers) for ask in scribe.asked)
    assert len(scribe.asked) == len(answers) == 2, "the stages are in the store"
    assert {tuple(row["parsed"]) for row in answered(judged)} == {("B",)}
    assert len(said(root)) == 2 * 5, "three stages, the chain, and its second turn"
