"""Replies as models of 2026 write them: how many are read wrong, and how many are not read."""

from collections import Counter

import pytest

from bench.replies import outcome, written_replies
from cardiolens.score.verdicts.parse import parse_answer
from cardiolens.score.verdicts.reply import without_thought

GRADES = (("A", "Normal"), ("B", "Mildly reduced"), ("C", "Moderately reduced"), ("D", "Severely reduced"))


@pytest.mark.parametrize("half", ["open", "closed", "fresh"])
@pytest.mark.parametrize("blind", [False, True])
def test_few_replies_are_read_wrong_and_few_are_not_read(half: str, blind: bool) -> None:
    count = Counter(outcome(reply, blind=blind) for reply in written_replies(half))
    assert count.total() > 60
    assert count["wrong"] <= 0.005 * count.total() or (blind and count["wrong"] <= 0.02 * count.total())
    assert count["unread"] <= 0.085 * count.total() or blind


@pytest.mark.parametrize(
    "text",
    ["ANSWER: B\n\nANSWER: D", "ANSWER: B\n\nThe correct answer is D.", "ANSWER: B\n\nAlternatively, D."],
)
def test_two_answers_without_order_are_inconsistent(text: str) -> None:
    parsed = parse_answer(text, GRADES, "ordinal")
    assert (parsed.keys, parsed.status) == ((), "inconsistent")


@pytest.mark.parametrize("name", ["think", "seed:think", "mm:think", "ifm|think", "thought", "think:any"])
def test_a_tag_is_reasoning_by_its_name(name: str) -> None:
    assert without_thought(f"<{name}>ANSWER: B</{name}>ANSWER: D") == "ANSWER: D"
