"""Asking back: a reply that cannot be read is quoted to its model, which gives its letters."""

import shutil

import pytest
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens.inference.engine.ask import Reply
from cardiolens.inference.engine.readers import Reader
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.plan.plan import plan
from cardiolens.protocol.dialogue.asking_back import NONE
from cardiolens.storage import schemas, tables
from cardiolens.storage.schemas import FINAL

PROSE = "It might be that, but the images show much else besides."


class Mumbler(Reader):
    """Reader that says its first option: at once, or in prose and only when it is asked back.

    `prose` of sixteen first replies are prose; asked back, it says N to `silent` of sixteen.
    """

    def __init__(self, prose=8, silent=0, constrained=True):
        self.asked = []
        self._prose, self._silent, self._constrained = prose, silent, constrained

    async def answer(self, ask, pictures):
        self.asked.append(ask)
        draw = int(ask.request_key[0], 16)
        letter = sorted(ask.option_keys)[0] if ask.option_keys else ""
        if "You replied:" in ask.text:
            assert PROSE in ask.text
            assert NONE in ask.constraint.legal
            text = NONE if draw < self._silent else letter
            text = text if self._constrained else f"My final answer is {text}."
        else:
            text = PROSE if ask.option_keys and draw < self._prose else f"ANSWER: {letter}"
        return Reply(text=text, finish_reason="stop", prompt_tokens=10, output_tokens=1)

    @property
    def second(self):
        return [ask for ask in self.asked if "You replied:" in ask.text]


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    return make_cohort(tmp_path_factory.mktemp("mumbled"), 3)


@pytest.fixture
def fresh(cohort):
    shutil.rmtree(cohort / "store" / "completions", ignore_errors=True)
    return cohort


def spec_of(root, asks_back=True, name="standard", **changes):
    prompt = {"name": name, "style": "standard", "max_tokens": 64, "asks_back": asks_back}
    return sweep_spec(root, reader("uniform"), prompt=[prompt], **changes)


def answered(judged):
    rows = judged.replies.verdicts.to_pylist()
    return [row for row in rows if row["answer_type"] != "report"]


def said(root):
    folders = (root / "store" / "completions").glob("*")
    rows = [row for folder in folders for row in tables.read(folder, schemas.COMPLETIONS).to_pylist()]
    final = [row["request_key"] for row in rows if row["status"] in FINAL]
    assert len(set(final)) == len(final), "nothing is asked twice"
    return set(final)


def test_what_cannot_be_read_is_asked_back_and_counts_by_the_second_turn(fresh):
    mumbler = Mumbler(prose=8, silent=4)
    _, judged = swept(spec_of(fresh), mumbler)
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


def test_a_free_second_reply_is_read_strictly(fresh):
    _, judged = swept(spec_of(fresh), Mumbler(prose=16, silent=4, constrained=False))
    assert {row["parse_status"] for row in answered(judged)} == {"asked_back", "no_answer"}


def test_stored_first_replies_are_asked_back_and_not_asked_again(fresh):
    before = Mumbler()
    _, judged = swept(spec_of(fresh, asks_back=False), before)
    assert not before.second
    assert {row["parse_status"] for row in answered(judged)} == {"ok", "parse_error"}
    after = Mumbler()
    planned = plan(spec_of(fresh))
    work = missing_of(planned, "uniform")
    _, judged = swept(spec_of(fresh), after)
    assert {ask.request_key for ask in before.asked} == said(fresh) - {ask.request_key for ask in after.asked}
    assert after.asked == after.second != []
    assert work.left == work.second_turns == len(after.second)
    assert {row["parse_status"] for row in answered(judged)} == {"ok", "asked_back"}
    again = Mumbler()
    _, same = swept(spec_of(fresh), again)
    assert again.asked == []
    assert same.replies.verdicts.equals(judged.replies.verdicts)


def test_a_plan_says_how_many_second_turns_there_can_be(fresh):
    work = missing_of(plan(spec_of(fresh)), "uniform")
    mumbler = Mumbler(prose=16)
    swept(spec_of(fresh), mumbler)
    assert work.second_turns == len(mumbler.second)
    assert missing_of(plan(spec_of(fresh)), "uniform").left == 0
    assert missing_of(plan(spec_of(fresh, asks_back=False)), "uniform").second_turns == 0
