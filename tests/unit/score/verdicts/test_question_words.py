"""Replies in the words of their question, beside what must not be read of them."""

import pytest

from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.score.verdicts.parse import Parsed, parse_answer
from cardiolens.score.verdicts.reply import visible

SUBTASKS = load_catalogue("openprotocol-1").subtasks


def parsed(code: str, text: str, *, cut: bool = False) -> Parsed:
    subtask = SUBTASKS[code]
    options = tuple((option.key, option.text) for option in subtask.options)
    return parse_answer(
        text,
        options,
        subtask.answer_type,
        subtask.exclusive,
        cut=cut,
        question=subtask.question,
        code=code,
    )


def keys(code: str, text: str) -> str:
    return "".join(parsed(code, text).keys)


@pytest.mark.parametrize(
    ("code", "text", "letters"),
    [
        ("L03", "All walls enhance.", "ABCDE"),
        ("L03", "All LV walls enhance, whereas the RV free wall doesn't.", "ABCD"),
        ("P02", "The defect spans all three levels.", "ABC"),
        ("P02", "All levels are perfused.", ""),
        ("P02", "Perfusion is seen at all levels.", ""),
        ("C08", "All walls move.", ""),
        ("L03", "All walls were assessed for enhancement.", ""),
        ("C17", "Both valves are unremarkable.", "A"),
        ("C16", "None of the atria is enlarged.", "A"),
        ("C16", "Not both atria are enlarged.", ""),
        ("C13", "RV wall unremarkable.", "A"),
        ("C13", "The LV wall is normal.", ""),
        ("C06", "Wall motion is absent.", ""),
        ("P03", "The septal wall shows a perfusion defect.", "B"),
        ("C08", "The septal wall moves.", ""),
        ("L01", "No, late gadolinium enhancement is absent.", "A"),
    ],
)
def test_a_sentence_in_the_words_of_its_question_is_read_only_if_it_speaks_of_a_finding(
    code: str, text: str, letters: str
) -> None:
    assert keys(code, text) == letters


@pytest.mark.parametrize(
    ("code", "text", "letters"),
    [
        ("C10", "A: no.\nB: I'd expect more.\nC: fits.\nD: an exaggeration.", "C"),
        ("D02", "- HCM – thin ✗\n- DCM – dilated ✓\n- Inflammatory ✗\n- Restrictive ✗\n- ACM ✗", "B"),
        (
            "T04",
            "A Focal\nB Segmental, within one coronary territory\nC Patchy or multifocal ✓\nD Diffuse",
            "C",
        ),
        ("C08", "A: ✗ moves poorly\nB: ✓ moves well", ""),
        (
            "D01",
            "**A** – low EF. Not applicable.\n**B** – RCA scar. Applicable.\n**C** – Not applicable.",
            "B",
        ),
        ("L02", "Basal: LGE+\nMid: LGE+\nApical: LGE−\nApex: LGE−\nPapillary muscle: LGE−", "AB"),
        ("C08", "Inferior and lateral walls contract normally; the anterior and septal walls don't.", "AB"),
        ("C09", "Neither A (some segments move well) nor B (two territories) works.", "C"),
        ("C14", "It can't be A. It can't be B.", "C"),
        ("D02", "Eliminating HCM, DCM, inflammatory and restrictive disease leaves ACM.", "E"),
        ("C10", "Eliminated: A, B, D", "C"),
        (
            "P03",
            "The septal, inferior and lateral walls are without defect. This leaves the anterior wall.",
            "A",
        ),
        ("C10", "It's not A or B. C or D? With an EF of 22 % the latter.", "D"),
        ("C10", "C or D? Neither the former nor the latter.", ""),
        ("T04", "A: too small. C: one area. D: the rest is normal. ⇒ B", "B"),
    ],
)
def test_entries_are_judged_by_signs_and_by_what_is_left(code: str, text: str, letters: str) -> None:
    assert keys(code, text) == letters


@pytest.mark.parametrize(
    ("code", "text", "letters"),
    [
        ("C10", "C01: A\nC10: C\nC15: A", "C"),
        ("C12", "LV size: B (mildly to moderately enlarged)\nRV size: A (normal size)", "A"),
        ("T03", "T2 signal: increased (B). Levels: basal (A) and mid (B). Wall: lateral (D).", "D"),
        ("T01", "Levels: B, C. Walls: D. Distribution: A.", ""),
        ("L03", "Levels: basal. Walls assessed: all.", ""),
        (
            "C16",
            "Q: Which atria are enlarged?\nA: C\n\nQ: What do the atrioventricular valves show?\nA: B",
            "C",
        ),
    ],
)
def test_of_answers_to_several_questions_the_own_one_is_read(code: str, text: str, letters: str) -> None:
    assert keys(code, text) == letters


@pytest.mark.parametrize(
    ("code", "text", "letters"),
    [
        ("D01", "I'm about 60% sure it's C, and 40% that it's B.", "C"),
        ("C10", '{"A": 0.05, "B": 0.2, "C": 0.7, "D": 0.05}', "C"),
        ("C10", "The EF is 45 %, so B. (60 % would be normal.)", "B"),
        ("C10", "It could be B (50 %) or C (50 %).", ""),
    ],
)
def test_likelihoods_may_stand_in_sentences_and_shares_of_one(code: str, text: str, letters: str) -> None:
    assert keys(code, text) == letters


@pytest.mark.parametrize(
    ("code", "text", "letters"),
    [
        ("C10", "ANSWER: C\n\nD would need almost no motion, and B is too generous.", "C"),
        ("T02", "ANSWER: B, C. Level A was degraded by motion and D lies outside the stack.", "BC"),
        ("C08", "ANSWER: A, B\n\nThe lateral wall is also involved.", ""),
        ("C08", "ANSWER: A\n\nMaybe D.", ""),
        ("C10", "ANSWER: B\n\nC may be the better answer.", ""),
        ("C10", "ANSWER: B\n\nC is correct.", ""),
        ("L03", "ANSWER: A, B, C. Sorry, not C: that's the papillary muscle.", "AB"),
        ("C12", "ANSWER: A\nANSWER: B\n\n(The second line is the final one.)", "B"),
        ("C19", "ANSWER: B... no, sorry, it's epicardial fat, so A.", "A"),
        ("C16", "ANSWER: B\n\nQuestion: Is there a pericardial effusion?\nANSWER: A", "B"),
    ],
)
def test_an_answer_stands_beside_others_that_are_only_mentioned(code: str, text: str, letters: str) -> None:
    assert keys(code, text) == letters


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("L04", "I refrain from answering. Options A, B, C and D would all need a better inversion time."),
        ("T03", "Without T2-weighted images, none of A, B, C and D can be supported."),
        ("C08", "The walls that move abnormally cannot be determined from A, B, C, D."),
        ("T01", "The T2 signal is normal and there is oedema."),
        ("L01", "Late enhancement is absent. The scar is large and enhancement is present."),
        ("C16", "Neither atrium is enlarged. The left atrium is enlarged."),
    ],
)
def test_a_refusal_and_a_contradiction_name_no_option(code: str, text: str) -> None:
    assert keys(code, text) == ""


@pytest.mark.parametrize("sign", [" ", ". ", ") ", ": ", " - ", " = "])
@pytest.mark.parametrize("between", ["\n", "; ", " "])
def test_a_copied_prompt_is_no_answer(sign: str, between: str) -> None:
    for code, subtask in SUBTASKS.items():
        listing = between.join(f"{option.key}{sign}{option.text}" for option in subtask.options)
        if listing:
            assert parsed(code, f"{subtask.question}\n{listing}").keys == (), listing


def test_reasoning_that_is_never_closed_may_end_with_an_answer_line() -> None:
    thought = "<think>\nThe ventricle is somewhat enlarged.\n\nANSWER: B"
    assert parsed("C01", thought).keys == ("B",)
    assert parsed("C01", thought, cut=True).keys == ()
    assert visible(thought) == ""
