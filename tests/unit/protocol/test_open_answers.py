"""Numbers and rankings in replies: one marked answer is read, and nothing is guessed."""

import pytest

from cardiolens.protocol.replies.open_answer import read_number, read_ranking
from cardiolens.protocol.tasks.catalogue import load_catalogue

NUMBERS = load_catalogue("numbers-1")
SHARE, VOLUME, PHASE = (NUMBERS[name].quantity for name in ("N01", "N02", "N05"))


@pytest.mark.parametrize(
    ("quantity", "reply", "value"),
    [
        (SHARE, "The cavity shrinks by half.\nANSWER: 57.3%.", 57.3),
        (SHARE, "final answer: 57,3 percent (mildly reduced)", 57.3),
        (SHARE, "57", 57),  # one unit alone is legal
        (SHARE, '{"answer": "57 %"}', 57),
        (SHARE, '```\n{"answer": 57}\n```', 57),
        (VOLUME, "ANSWER: 0.14 l", 140),
        (VOLUME, "ANSWER: 140 ml\nANSWER: 0.14 l", 140),
        (PHASE, "ANSWER: phase 8", 8),
    ],
)
def test_one_number_is_read_in_its_unit(quantity, reply, value):
    assert read_number(reply, quantity.read).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("quantity", "reply", "problem"),
    [
        (VOLUME, "ANSWER: 140", "has no unit, and ml and l are legal"),
        (VOLUME, "ANSWER: 1,200 ml", "comma before three digits"),
        (SHARE, "ANSWER: 55-60 %", "not one number"),
        (SHARE, "ANSWER: 0.57", "outside 1 to 95 %"),
        (SHARE, "ANSWER: 57 %\nANSWER: 63 %", "differ"),
        (SHARE, '{"answer": "57 %"} or rather {"answer": "63 %"}', "differ"),
        (SHARE, '{"answer": ' + "[" * 100_000, "not one number"),
        (PHASE, "ANSWER: 8.5", "whole"),
        (SHARE, " " * 100_000 + "57 %", "not one number"),
    ],
)
def test_what_is_not_one_number_with_its_unit_is_unread(quantity, reply, problem):
    reading = read_number(reply, quantity.read)
    assert reading.value is None
    assert problem in reading.problem


def test_a_ranking_is_a_numbered_list_in_its_order():
    reply = "Thinking of three.\nANSWER:\n1. Fabry disease\n2) Danon disease.\n3. Amyloidosis\nThat is all."
    assert read_ranking(reply, 10).value == ("Fabry disease", "Danon disease", "Amyloidosis")
    assert read_ranking(reply, 2).value == ("Fabry disease", "Danon disease")
    assert read_ranking("1. Fabry disease\n2. Danon disease", 10).value == ("Fabry disease", "Danon disease")
    assert read_ranking('{"answer": ["Fabry", "Danon"]}', 10).value == ("Fabry", "Danon")


@pytest.mark.parametrize(
    "reply", ["", "Fabry disease", "ANSWER:\n1. Fabry\n3. Danon", "ANSWER:\n1. Fabry\n2. FABRY"]
)
def test_other_lists_are_unread(reply):
    assert read_ranking(reply, 10).value is None
