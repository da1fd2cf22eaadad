"""Reply forms and what they name (protocol 7.6)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.score.verdicts.parse import Parsed, parse_answer
from cardiolens.score.verdicts.reply import without_thought

SIZE = (("A", "Normal size"), ("B", "Mildly to moderately enlarged"), ("C", "Markedly dilated"))
WALL = (("A", "Normal"), ("B", "Thinned"), ("C", "Thickened"), ("D", "Bulging (outward contour deformity)"))
LEVELS = (
    ("A", "Basal segment"),
    ("B", "Mid segment"),
    ("C", "Apical segment"),
    ("D", "Apex"),
    ("E", "Papillary muscle"),
)
LGE = (("A", "Absent"), ("B", "Present"))

SINGLE = [  # against SIZE, ordinal
    ("B", "B", "letters"),
    ("b", "B", "letters"),
    ("B.", "B", "letters"),
    ("(B)", "B", "letters"),
    ("**B**", "B", "letters"),
    (" \n B \n", "B", "letters"),
    ("Ｂ", "B", "letters"),
    ("B. Mildly to moderately enlarged", "B", "letters"),
    ("Option B", "B", "letters"),
    ("ANSWER: B", "B", "answer_line"),
    ("answer: b", "B", "answer_line"),
    ("ANSWER:B", "B", "answer_line"),
    ("ANSWER = B", "B", "answer_line"),
    ("ANSWER： B", "B", "answer_line"),
    ("ＡＮＳＷＥＲ：Ｂ", "B", "answer_line"),
    ("**ANSWER: B**", "B", "answer_line"),
    ("**ANSWER:** **B**", "B", "answer_line"),
    ("### Final ANSWER: `B`", "B", "answer_line"),
    ("ANSWER: \\boxed{B}", "B", "boxed"),
    ("ANSWER: $\\text{B}$", "B", "answer_line"),
    ("ANSWER: [B]", "B", "answer_line"),
    ("ANSWER: <B>", "B", "answer_line"),
    ('ANSWER: "B"', "B", "answer_line"),
    ("ANSWER: B.", "B", "answer_line"),
    ("ANSWER: B. Mildly to moderately enlarged", "B", "answer_line"),
    ("ANSWER: B) mildly to moderately enlarged.", "B", "answer_line"),
    ("ANSWER: B (not C, since the wall is thin)", "B", "answer_line"),
    ("ANSWER: B because the cavity is wide", "B", "answer_line"),
    ("ANSWER: A is right", "A", "answer_line"),
    ("ANSWER: A Normal size", "A", "answer_line"),
    ("ANSWER: option B", "B", "answer_line"),
    ("ANSWER: B, B", "B", "answer_line"),
    ("ANSWER:\n\nB", "B", "answer_line"),
    ("1. wide\n2. thin\nANSWER: A\nOn reflection:\nANSWER: C", "C", "answer_line"),
    ("ANSWER: C\nFormat was ANSWER: <letter or letters separated by commas>", "C", "answer_line"),
    ("The cavity is wide.\r\nANSWER: C\r\n", "C", "answer_line"),
    ("<think>ANSWER: A? No.</think>ANSWER: C", "C", "answer_line"),
    ("<think>first</think>\n<think>A</think>\nC", "C", "letters"),
    ("it might be A</think>\nANSWER: B", "B", "answer_line"),
    ("◁think▷Normal size?◁/think▷ANSWER: B", "B", "answer_line"),
    ('{"answer": "B"}', "B", "json"),
    ('```json\n{"answer": "B", "why": "wide"}\n```', "B", "json"),
    ('Here: {"Answer": ["B"]} done', "B", "json"),
    ('{"answer": "markedly dilated"}', "C", "json"),
    ('{"answer": "C. Markedly dilated"}', "C", "json"),
    ('{"a": 1} {"answer": "A"} {"answer": "C"}', "C", "json"),
    ("The answer is B.", "B", "answer_phrase"),
    ("## Answer\nB", "B", "answer_phrase"),
    ("I would choose C", "C", "answer_phrase"),
    ("答案：B", "B", "answer_line"),
    ("左心室扩大。答案：B。", "B", "answer_line"),
    ("答案是B", "B", "answer_phrase"),
    ("我选择C。", "C", "answer_phrase"),
    ("Der linke Ventrikel ist vergrößert. Antwort: B", "B", "answer_line"),
    ("Die richtige Antwort ist C.", "C", "answer_phrase"),
    ("Markedly dilated", "C", "option_text"),
    ("markedly dilated.", "C", "option_text"),
    ("ANSWER: Markedly dilated", "C", "answer_line"),
    ("The cavity looks Markedly  dilated in all slices.", "C", "option_text"),
    ("It is not Normal size but Markedly dilated", "C", "option_text"),
    (
        "How large?\nA. Normal size\nB. Mildly to moderately enlarged\nC. Markedly dilated\nANSWER: C",
        "C",
        "answer_line",
    ),
]

MULTI = [  # against LEVELS, multi
    ("A", "A", "letters"),
    ("A,C", "AC", "letters"),
    ("A and C", "AC", "letters"),
    ("ACD", "ACD", "letters"),
    ("C A", "AC", "letters"),
    ("A. Basal segment\nB. Mid segment", "AB", "letters"),
    ("ANSWER: A, C", "AC", "answer_line"),
    ("ANSWER: A and C", "AC", "answer_line"),
    ("ANSWER: A, B, and E", "ABE", "answer_line"),
    ("ANSWER: A/C", "AC", "answer_line"),
    ("ANSWER: A C", "AC", "answer_line"),
    ("ANSWER: A; C", "AC", "answer_line"),
    ("ANSWER: A & C", "AC", "answer_line"),
    ("ANSWER: A，C", "AC", "answer_line"),
    ("ANSWER: A、C", "AC", "answer_line"),
    ("ANSWER: (A), (C)", "AC", "answer_line"),
    ("ANSWER: (A)(C)", "AC", "answer_line"),
    ("ANSWER: **A**, **C**", "AC", "answer_line"),
    ("ANSWER: ['A', 'C']", "AC", "answer_line"),
    ("ANSWER: A. Basal segment, C. Apical segment", "AC", "answer_line"),
    ("ANSWER: C, A, C", "AC", "answer_line"),
    ("ANSWER: options A and C", "AC", "answer_line"),
    ("ANSWER:\n- A\n- C\n\nDone.", "AC", "answer_line"),
    ("ANSWER: A und C", "AC", "answer_line"),
    ("答案：A 和 C", "AC", "answer_line"),
    ("答案：A、C、D", "ACD", "answer_line"),
    ("Antworten: A, C", "AC", "answer_line"),
    ('{"answer": ["A", "C"]}', "AC", "json"),
    ('{"answer": "A, C"}', "AC", "json"),
    ('{"answer": ["Basal segment", "apex"]}', "AD", "json"),
    ("Basal segment and Apex", "AD", "option_text"),
    ("basal segment, apex", "AD", "option_text"),
    (
        "Bright in the Mid segment; the Apex too. Not in the Papillary muscle: no Papillary muscle.",
        "BD",
        "option_text",
    ),
]

NOTHING = [  # against SIZE, ordinal
    ("", "none"),
    ("   \n", "none"),
    ("ANSWER:", "none"),
    ("ANSWER: none of the above", "none"),
    ("none of the above", "none"),
    ("ANSWER: D", "answer_line"),
    ("ANSWER: B, D", "answer_line"),
    ("ANSWER: A, B", "answer_line"),
    ("A and C", "letters"),
    ("ANSWER: A or B", "answer_line"),
    ("ANSWER: B-C", "answer_line"),
    ("ANSWER: a bit large", "none"),
    ("BAD", "none"),
    ("The cavity is large and the wa", "none"),
    ("1. the cavity is wide\n2. compared with", "none"),
    ("<think>ANSWER: B", "none"),
    ("<think>The cavity is Markedly dilated", "none"),
    ("The cavity is not Markedly dilated", "none"),
    ('{"answer": null}', "none"),
    ('{"answer": "E"}', "json"),
    ('{"answer": ', "none"),
    ("Normal size or Markedly dilated", "option_text"),
    ("A. Normal size\nB. Mildly to moderately enlarged\nC. Markedly dilated", "none"),
    (
        "Options:\nA. Normal size\nB. Mildly to moderately enlarged\nC. Markedly dilated\n"
        "Finish with one line: ANSWER: <letter or letters separated by commas>",
        "none",
    ),
    ("🫀🫀🫀", "none"),
]

REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "I’m unable to interpret medical images.",
    "I cannot provide a diagnosis; please consult a qualified radiologist.",
    "As an AI, I do not read scans.",
    "This cannot be determined from the frames.",
    "ANSWER: I cannot determine this",
    "抱歉，我无法回答这个问题。",
    "Es tut mir leid, ich kann diese Bilder nicht beurteilen.",
    "<think>ANSWER: B</think> I must decline.",
]  # fmt: skip


@pytest.mark.parametrize(("text", "key", "rule"), SINGLE)
def test_a_single_choice_reply_names_its_option(text: str, key: str, rule: str) -> None:
    assert parse_answer(text, SIZE, "ordinal") == Parsed((key,), rule, "ok")


@pytest.mark.parametrize(("text", "keys", "rule"), MULTI)
def test_a_multi_select_reply_names_its_options_in_their_order(text: str, keys: str, rule: str) -> None:
    assert parse_answer(text, LEVELS, "multi") == Parsed(tuple(keys), rule, "ok")


@pytest.mark.parametrize(("text", "rule"), NOTHING)
def test_a_reply_that_names_no_one_option_is_a_parse_error(text: str, rule: str) -> None:
    assert parse_answer(text, SIZE, "ordinal") == Parsed((), rule, "parse_error")


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_its_own_status(text: str) -> None:
    assert parse_answer(text, SIZE, "ordinal") == Parsed((), "none", "refusal")


def test_an_answer_after_an_apology_counts() -> None:
    text = "I cannot be certain from these frames.\nANSWER: C"
    assert parse_answer(text, SIZE, "ordinal") == Parsed(("C",), "answer_line", "ok")


def test_an_exclusive_option_beside_others_is_kept_and_flagged() -> None:
    assert parse_answer("ANSWER: A, C", WALL, "multi", ("A",)) == Parsed(
        ("A", "C"), "answer_line", "inconsistent"
    )
    assert parse_answer("ANSWER: A", WALL, "multi", ("A",)) == Parsed(("A",), "answer_line", "ok")
    assert parse_answer("ANSWER: B, C", WALL, "multi", ("A",)) == Parsed(("B", "C"), "answer_line", "ok")


def test_all_options_repeated_are_not_a_choice_of_all() -> None:
    listing = "A. Basal segment\nB. Mid segment\nC. Apical segment\nD. Apex\nE. Papillary muscle"
    assert parse_answer(listing, LEVELS, "multi").status == "parse_error"
    assert parse_answer("ANSWER: A, B, C, D, E", LEVELS, "multi").keys == tuple("ABCDE")


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("LGE is not Present", ("A",)),
        ("no enhancement present", ("A",)),
        ("It is presently absent-minded", ()),
    ],
)
def test_an_option_text_inside_other_words_or_negated_does_not_count(
    text: str, keys: tuple[str, ...]
) -> None:
    assert parse_answer(text, LGE, "single").keys == keys


def test_json_nested_too_deep_to_read_names_nothing() -> None:
    assert parse_answer('{"answer":' * 5000, SIZE, "ordinal").status == "parse_error"


def test_several_think_blocks_leave_what_lies_between() -> None:
    assert without_thought("x<think>1</think>y<think>2</think>z<think>3") == "xyz"


pieces = st.sampled_from(
    [
        "ANSWER:",
        "A",
        "B",
        "F",
        ",",
        " and ",
        "\n",
        "<think>",
        "</think>",
        "Normal size",
        "{",
        '"answer":',
        "}",
        "**",
        *(
            " ; ",
            "[",
            "]",
            "<answer>",
            "</answer>",
            "\\boxed{",
            "<think>",
            "</think>",
            "1. ",
            "• ",
            "|",
            "->",
        ),
        *(
            " either ",
            " neither ",
            " except ",
            " maybe ",
            "frame ",
            "选",
            "不",
            "\ufeff",
            "A",
            "B",
            " no",
            ": yes",
        ),
    ]
)
replies = st.one_of(
    st.text(max_size=60), st.lists(st.one_of(pieces, st.text(max_size=4)), max_size=12).map("".join)
)


@settings(max_examples=1_000)
@given(replies, st.sampled_from(["single", "ordinal", "multi"]), st.sampled_from([SIZE, WALL, LEVELS, LGE]))
def test_no_reply_raises_or_names_a_letter_outside_the_options(
    text: str, answer_type: str, options: tuple[tuple[str, str], ...]
) -> None:
    parsed = parse_answer(text, options, answer_type, ("A",))
    order = [key for key, _ in options]
    assert list(parsed.keys) == [key for key in order if key in parsed.keys]
    assert parsed.keys if parsed.status == "ok" else (parsed.status == "inconsistent" or not parsed.keys)
    assert answer_type == "multi" or len(parsed.keys) <= 1


@given(st.permutations(["A", "C", "E"]), st.sampled_from([", ", " ", "/", " and ", "，"]))
def test_order_and_separator_of_letters_do_not_matter(keys: list[str], separator: str) -> None:
    assert parse_answer(f"ANSWER: {separator.join(keys)}", LEVELS, "multi").keys == ("A", "C", "E")


@pytest.mark.parametrize("reply", ["A{", "B (", "ANSWER: A, C [", "A (no", "Answer: {"])
def test_a_bracket_that_is_never_closed_is_no_error(reply: str) -> None:
    options = (("A", "Basal segment"), ("B", "Mid segment"), ("C", "Apical segment"))
    assert set(parse_answer(reply, options, "multi").keys) <= {"A", "B", "C"}


def test_no_behind_a_letter_is_not_the_text_of_an_option_that_begins_with_no() -> None:
    options = (("A", "No abnormality"), ("B", "Mitral regurgitant jet"), ("C", "Tricuspid regurgitant jet"))
    for reply in ("A: no\nB: yes\nC: no", "A - no\nB - yes\nC - no", "A: No\nB: Yes\nC: No"):
        assert parse_answer(reply, options, "multi").keys in {("B",), ()}, reply
    assert parse_answer("A: No abnormality", options, "multi").keys == ("A",)


@pytest.mark.parametrize(
    "reply", ["ANSWER: A", "A", "(A)", "The answer is A.", '{"answer": "A"}', "Option A"]
)
@pytest.mark.parametrize("text", ["A", "a", "A or B", "Grade A or B"])
def test_a_letter_is_a_letter_before_it_is_a_text(reply: str, text: str) -> None:
    options = (("A", "Normal"), ("B", text), ("C", "Dilated"))
    assert parse_answer(reply, options, "single").keys == ("A",)
