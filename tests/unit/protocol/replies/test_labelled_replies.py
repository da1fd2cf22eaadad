"""Replies whose readings were decided by hand: almost none is read wrong, and most are read."""

from collections import Counter

import pytest

from bench.replies import (
    SETS,
    SHARED,
    SUBTASKS,
    WrittenReply,
    outcome,
    reading_of,
    shared_replies,
    written_replies,
)
from cardiolens.protocol.replies import read_reply


def counts(replies: list[WrittenReply]) -> Counter[str]:
    return Counter(outcome(reply, reading_of(reply).answers) for reply in replies)


@pytest.mark.parametrize("name", SETS)
def test_almost_no_labelled_reply_is_read_wrong(name: str) -> None:
    count = counts(list(written_replies(name)))
    assert count.total() > 60
    assert count["wrong"] <= 0.003 * count.total()


@pytest.mark.skipif(not SHARED.is_file(), reason="no replies beside the repository (../shared/judging)")
def test_of_the_shared_replies_none_is_read_wrong() -> None:
    count = counts(shared_replies())
    assert count["wrong"] == 0
    assert count["right"] > 0.75 * count.total()


@pytest.mark.parametrize("sign", [" ", ". ", ") ", ": ", " - ", " = "])
@pytest.mark.parametrize("between", ["\n", "; ", " ", ", "])
def test_a_copied_prompt_is_no_answer(sign: str, between: str) -> None:
    for subtask in SUBTASKS.values():
        options = tuple((option.key, option.text) for option in subtask.options)
        listing = between.join(f"{letter}{sign}{text}" for letter, text in options)
        for several in (False, True) if len(options) > 2 else (False,) if options else ():
            reading = read_reply(f"{subtask.question}\n{listing}", options, several=several)
            assert reading.answers == (), listing
