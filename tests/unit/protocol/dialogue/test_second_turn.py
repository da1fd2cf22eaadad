"""The request that asks back: when there is one, what it says, and how its reply is read."""

import pytest

from cardiolens.protocol.dialogue.asking_back import NONE, DisplayedChoice

TEXTS = {"A": "Normal", "B": "Mildly reduced", "C": "Severely reduced"}
ONE = DisplayedChoice.of("single", ("A", "B", "C"), (), TEXTS)
SEVERAL = DisplayedChoice.of("multi", ("C", "A", "B"), ("A",), TEXTS)
PROSE = "The images leave room for more than one reading."


def second(reply, choice=ONE, key="k", finish_reason="stop"):
    return choice.second_turn(key, reply, finish_reason)


@pytest.mark.parametrize(
    ("reply", "finish_reason"),
    [
        ("ANSWER: B", "stop"),
        ("I cannot provide a diagnosis from these images.", "stop"),
        ("", "stop"),
        ("<think>It could be A.</think>", "stop"),
    ],
)
def test_nothing_is_asked_back_after_an_answer_a_refusal_or_no_visible_text(reply, finish_reason):
    assert second(reply, finish_reason=finish_reason) is None


@pytest.mark.parametrize("reply", [PROSE, "ANSWER: A\nANSWER: B", f"<think>Hm, A.</think>{PROSE}"])
def test_the_visible_reply_is_quoted(reply):
    turn = second(reply)
    assert "Hm" not in turn.ending
    assert reply.removeprefix("<think>Hm, A.</think>") in turn.ending
    assert turn.constraint.legal == ("A", "B", "C", NONE)


def test_the_key_depends_on_the_first_request_the_reply_and_the_form_alone():
    keys = {second(PROSE).request_key, second(PROSE, key="l").request_key, second(f"{PROSE}!").request_key}
    keys.add(second(PROSE, choice=SEVERAL).request_key)
    assert len(keys) == 4
    assert second(PROSE) == second(PROSE)


@pytest.mark.parametrize(
    ("choice", "reply", "answer"),
    [
        (ONE, "B", ("B",)),
        (ONE, "N", ()),
        (ONE, "The final answer is C.", ("C",)),
        (ONE, PROSE, None),
        (ONE, "A, B", None),
        (SEVERAL, "B, C", ("B", "C")),
        (SEVERAL, "B, N", None),
    ],
)
def test_a_second_reply_gives_letters_none_or_cannot_be_read(choice, reply, answer):
    assert choice.answer(reply, "stop") == answer


def test_a_question_with_an_option_n_is_not_asked_back():
    letters = tuple("ABCDEFGHIJKLMN")
    texts = {letter: f"finding {number}" for number, letter in enumerate(letters)}
    assert second(PROSE, choice=DisplayedChoice.of("single", letters, (), texts)) is None
