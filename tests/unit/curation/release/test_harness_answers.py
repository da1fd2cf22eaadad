"""Replies as task folders of other harnesses read them, beside the rules of a sweep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.curation.release.harness.handed_out.cardiolens_answers import is_correct, picked
from cardiolens.score.verdicts.parse import parse_answer

OPTIONS = (("A", "Normal"), ("B", "Mildly reduced"), ("C", "Severely reduced"))
KEYS = [key for key, _ in OPTIONS]


@pytest.mark.parametrize(
    ("reply", "several", "keys"),
    [
        ("ANSWER: B", False, {"B"}),
        ("answer: b", False, {"B"}),
        ("The wall moves less.\nANSWER: B", False, {"B"}),
        ("ANSWER: A\nNo, wait.\nANSWER: C", False, {"C"}),
        ("**ANSWER: B**", False, {"B"}),
        ("**Answer:** B.", False, {"B"}),
        ("ANSWER: (B)", False, {"B"}),
        ("ANSWER: B. Mildly reduced", False, {"B"}),
        ('{"answer": ["B"]}', False, {"B"}),
        ('{"answer": "B"}', False, {"B"}),
        ("B", False, {"B"}),
        ("B.", False, {"B"}),
        ("ANSWER: A, C", True, {"A", "C"}),
        ("ANSWER: A and C", True, {"A", "C"}),
        ("A, C", True, {"A", "C"}),
        ('Both.\n{"answer": ["A", "C"]}', True, {"A", "C"}),
        ("ANSWER: A, B", False, None),
        ("ANSWER: D", False, None),
        ("ANSWER:", False, None),
        ("", False, None),
        ("I cannot tell.", False, None),
        ("ANSWER: none of these", False, None),
        ("{", False, None),
        ('{"answer": []}', True, None),
    ],
)
def test_marked_replies_are_read_as_a_sweep_reads_them(
    reply: str, several: bool, keys: set[str] | None
) -> None:
    assert picked(reply, KEYS, several=several) == keys
    ours = parse_answer(reply, OPTIONS, "multi" if several else "single")
    assert (set(ours.keys) or None) == keys


def test_prose_is_not_read_where_a_sweep_reads_it() -> None:
    """The README of a task folder says so."""
    reply = "I think that it is mildly reduced.\nSo I choose option B."
    assert parse_answer(reply, OPTIONS, "single").keys == ("B",)
    assert picked(reply, KEYS, several=False) is None


def test_only_exactly_the_right_options_are_right() -> None:
    row = {"options": [{"key": key} for key in KEYS], "answer_type": "multi", "answer": ["A", "C"]}
    replies = ("ANSWER: C, A", "ANSWER: A", "ANSWER: A, B, C", "no")
    assert [is_correct(reply, row) for reply in replies] == [True, False, False, False]


@given(st.text(max_size=200))
def test_any_text_is_read_or_not_read(reply: str) -> None:
    keys = picked(reply, KEYS, several=False)
    assert keys is None or (len(keys) == 1 and keys <= set(KEYS))
