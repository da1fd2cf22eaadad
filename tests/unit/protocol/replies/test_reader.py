"""The strict reader: marked answers, replies that are nothing but an answer, and nothing else."""

import json
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from cardiolens.protocol.prompts.question import asked_of
from cardiolens.protocol.replies import Reading, read_reply
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.legal import legal_replies

GRADES = (("A", "Normal"), ("B", "Mildly reduced"), ("C", "Moderately reduced"), ("D", "Severely reduced"))
LEVELS = (
    ("A", "Basal segment"),
    ("B", "Mid segment"),
    ("C", "Apical segment"),
    ("D", "Apex"),
    ("E", "Papillary muscle"),
)
WALLS = tuple((option.key, option.text) for option in load_catalogue("authors-1")["AL04"].options)
CHOICES = [
    subtask
    for protocol in ("openprotocol-1", "authors-1")
    for subtask in load_catalogue(protocol).subtasks.values()
    if subtask.answer_type != "report"
]
PIECES = [
    *("ANSWER: ", "A", "B, ", "C. ", "Basal segment", " and ", "\n", "- ", "(", ")", "The answer is ", "? "),
    *("**", "{", '{"answer":', '"A"', "}", "[", "<answer>", "</answer>", "\\boxed{", "<think>", "</think>"),
    *("答案", "wait"),
]
HOSTILE = [
    *(". ", " ", "<p>", "~~", "$", "\nUser", "User:\n", "a_b", '{"a":1 ', "I cannot ", "option "),
    *("based on a ", "’"),
]


def one(text: str, finish_reason: str = "stop") -> Reading:
    return read_reply(text, GRADES, several=False, finish_reason=finish_reason)


@pytest.mark.parametrize(
    ("text", "letter", "rule"),
    [
        ("The cavity is wide.\n\nANSWER: B", "B", "answer_line"),
        ("**ANSWER:** B. Mildly reduced", "B", "answer_line"),
        ("So the correct answer is (B).", "B", "answer_phrase"),
        ("Final answer: The answer is B.", "B", "answer_line"),
        ("## Answer\n\n**B**", "B", "answer_phrase"),
        ("ANSWER: \\boxed{B}", "B", "boxed"),
        ("<think>ANSWER: A</think><answer>B</answer>", "B", "answer_tag"),
        ('```json\n{"reasoning": "ANSWER: A?", "answer": ["B"]}\n```', "B", "json"),
        ("答案：B", "B", "answer_line"),
        ("Die richtige Antwort ist B.", "B", "answer_phrase"),
        ("Ｂ", "B", "letters"),
        ("(B) Mildly reduced. The cavity shrinks a little.", "B", "letters"),
        ("mildly reduced.", "B", "option_text"),
    ],
)
def test_a_marked_or_bare_answer_is_read(text: str, letter: str, rule: str) -> None:
    assert one(text) == Reading("read", (letter,), rule)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("ANSWER: B\n\nANSWER: C", "contradicted"),
        ("ANSWER: B\n\nWait, let me look again.", "contradicted"),
        ("ANSWER: B\n\nC would need less motion.", "contradicted"),
        ("ANSWER: B or C", "unread"),
        ("ANSWER: F", "unread"),
        ("The function is mildly reduced, so I would go for B.", "unread"),
        ("Finish with one line: ANSWER: <letter>", "unread"),
        ("C. difficile", "unread"),
        ("I'm sorry, I cannot judge this.", "refused"),
        ("<think>The answer is B", "unread"),
        ("", "unread"),
    ],
)
def test_everything_else_has_no_answer(text: str, status: str) -> None:
    reading = one(text)
    assert (reading.status, reading.answers) == (status, ())


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("ANSWER: B", "cut"),
        ("ANSWER: B\nThe cav", "read"),
        ("<answer>B</answer>", "read"),
        ("B", "cut"),
        ("I cannot judge", "cut"),
        ("B\nReason: The cav", "read"),
    ],
)
def test_a_cut_reply_is_read_by_a_complete_mark_only(text: str, status: str) -> None:
    assert one(text, "length").status == status


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("ANSWER: A, C", "AC"),
        ("ANSWER:\n- A. Basal segment\n- C. Apical segment", "AC"),
        ("Basal segment and apex", "AD"),
        ("ANSWER: A, C, and the septum", ""),
        ("A. Basal segment\nB. Mid segment\nC. Apical segment\nD. Apex\nE. Papillary muscle", ""),
    ],
)
def test_a_list_is_read_whole_or_not_at_all(text: str, letters: str) -> None:
    assert "".join(read_reply(text, LEVELS, several=True).answers) == letters


FORMS = {
    "answer line": lambda keys, texts: f"Some words.\n\nANSWER: {', '.join(keys)}",
    "letters": lambda keys, texts: " and ".join(keys),
    "JSON": lambda keys, texts: json.dumps({"answer": keys}),
    "box": lambda keys, texts: rf"So \boxed{{{', '.join(keys)}}}",
    "letters with texts": lambda keys, texts: "\n".join(map("{}. {}".format, keys, texts)),
    "texts": lambda keys, texts: "ANSWER: " + "; ".join(texts),
    "JSON of texts": lambda keys, texts: json.dumps({"answer": texts}),
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_order_of_letters_and_texts_is_read_back(form: str, data: st.DataObject) -> None:
    subtask = data.draw(st.sampled_from(CHOICES))
    letters = data.draw(st.permutations([option.key for option in subtask.options]))
    texts = data.draw(st.permutations([option.text for option in subtask.options]))
    options = tuple(zip(letters, texts, strict=True))
    several = subtask.answer_type == "multi"
    chosen = data.draw(
        st.lists(
            st.sampled_from(options), min_size=1, max_size=len(options) - 1 if several else 1, unique=True
        )
    )
    reply = FORMS[form]([letter for letter, _ in chosen], [text for _, text in chosen])
    reading = read_reply(reply, options, several=several)
    assert (reading.status, set(reading.answers)) == ("read", {letter for letter, _ in chosen}), reply


@settings(max_examples=500, deadline=None)
@given(st.text(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_text_is_read_to_legal_letters_or_not_read(text: str) -> None:
    for options, several in ((GRADES, False), (WALLS, True)):
        for finish_reason in ("stop", "length"):
            reading = read_reply(text, options, several=several, finish_reason=finish_reason)
            assert set(reading.answers) <= {letter for letter, _ in options}
            assert (reading.status == "read") == bool(reading.answers)
            assert several or len(reading.answers) <= 1


@pytest.mark.parametrize("piece", [*PIECES, *HOSTILE])
def test_time_is_linear_in_the_length_of_a_reply(piece: str) -> None:
    """Linear rules take 0.2 to 0.6 s; the limit is for a busy machine, and quadratic rules take minutes."""
    before = time.process_time()
    read_reply(piece * (100_000 // len(piece)), LEVELS, several=True)
    assert time.process_time() - before < 2


@pytest.mark.parametrize(
    "form", ["{}", "ANSWER: {}", "First points.\nANSWER: {}", "{}\nReason: bright areas"]
)
@pytest.mark.parametrize("protocol", ["openprotocol-1", "authors-1"])
def test_every_reply_that_decoding_may_allow_is_read_as_it_is(protocol: str, form: str) -> None:
    """All letters at once too: a model that picks every option has answered."""
    catalogue = load_catalogue(protocol)
    for subtask in catalogue.subtasks.values():
        if subtask.answer_type in ("report", "number", "ranking"):
            continue
        options = tuple((option.key, option.text) for option in subtask.options)
        displayed = asked_of(subtask, catalogue, subtask.question, options).displayed
        assert displayed == options, "letters are those of the catalogue"
        several = subtask.answer_type == "multi"
        for legal in legal_replies(subtask.answer_type, subtask.keys, subtask.exclusive):
            reading = read_reply(form.format(legal), options, several=several)
            assert (reading.status, ", ".join(reading.answers)) == ("read", legal), (subtask.id, legal)


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
