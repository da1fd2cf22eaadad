"""Options that a prompt could not list on a line each, or that a reply could not tell from a letter."""

import re

import pytest

from cardiolens.base.errors import InputError
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.legal import option_problems
from cardiolens.protocol.tasks.questions import write_questions
from tests.unit.questions_file import read_questions

LETTER, LINE = "would be the letter of an option", "expected one line without control characters"
REFUSED = {
    **dict.fromkeys(
        ["A", "b", "C.", "(A)", " [b] ", "Option B", "A and C", "Both A & B", "neither A nor B"], LETTER
    ),
    **dict.fromkeys(["\u0410", "\u0392", "\u24b6", "\U0001d400"], LETTER),  # Cyrillic, Greek, circled, bold
    **{f"Thin{mark}B. Normal": LINE for mark in "\n\r\t\v\f\0\x1c\x7f\x85\u2028\u2029\u202e\ufdd0\ufffc"},
    "\uff21": "holds the full-width letter '\uff21'; .* write 'A'",
    "\uff34hin": "holds the full-width letter",
    " \u200b": "has a blank text",
    "NORMAL  wall": "options A and C have the same text",
    "Normal wa\u2113\u2113": "options A and C have the same text",  # script small l
}
TAKEN = ["Grade A", "Type A or B", "T", "AB", "Vitamin A", "一", "T2 > 50 ms", "Ångström", "α", "A wall"]


def among(text: str) -> list[tuple[str, str]]:
    return [("A", "Normal wall"), ("B", "Bulging"), ("C", text)]


@pytest.mark.parametrize(("text", "said"), REFUSED.items(), ids=map(ascii, REFUSED))
def test_the_option_is_named(text: str, said: str) -> None:
    assert any(re.search(said, problem) and "C" in problem for problem in option_problems(among(text)))


@pytest.mark.parametrize("text", TAKEN)
def test_words_with_a_letter_are_an_option(text: str) -> None:
    assert option_problems(among(text)) == []


def test_letters_are_those_displayed_whatever_the_keys() -> None:
    assert option_problems([("D", "A"), ("E", "Bulging")]) != []
    assert option_problems([("D", "E"), ("E", "Bulging")]) != []
    assert option_problems([("D", "C"), ("E", "Bulging")]) == []


@pytest.mark.parametrize("text", ["B", "Thick\nB. Normal"])
def test_a_question_with_it_is_refused(text: str, tmp_path) -> None:
    record = {
        "schema": "qa-1",
        "qa_id": "S1:C02",
        "study_id": "S1",
        "patient_id": "S1",
        "tier": 1,
        "subtask": "C02",
        "sequence": "cine",
        "question": "Which?",
        "answer_type": "multi",
        "answer": ["A"],
        "origin": "reader",
        "protocol": "openprotocol-1",
        "options": [{"key": key, "text": of} for key, of in among(text)],
    }
    path = tmp_path / "questions.jsonl"
    write_questions(path, [record | {"qa_id": "S2:C02", "options": record["options"][:2]}, record])
    with pytest.raises(InputError, match=r"questions\.jsonl:2: S1:C02: option C "):
        read_questions(path, load_catalogue("openprotocol-1"))
