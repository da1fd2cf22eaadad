"""Replies that say something, and not for certain what their question asks: each beside one that does."""

import random
import re

import pytest

from bench.replies import SUBTASKS, written_replies
from cardiolens.score.verdicts.parse import parse_answer


def keys(code: str, text: str) -> str:
    subtask = SUBTASKS[code]
    options = tuple((option.key, option.text) for option in subtask.options)
    parsed = parse_answer(
        text, options, subtask.answer_type, subtask.exclusive, question=subtask.question, code=code
    )
    return "".join(parsed.keys)


@pytest.mark.parametrize(
    ("code", "text", "uncertain"),
    [
        ("C10", "Function: C", "GT: C"),
        ("C10", "My pick: C", "Previous question: C"),
        ("C10", "LV function: C", "LV size: C"),
        ("C10", "The correct answer is C.", "The expected answer is C."),
        ("C10", "So the answer is C.", "I was told the answer is C."),
        ("C10", "So ANSWER: C", "Your last line must read ANSWER: C"),
        ("C10", "ANSWER: C", "ANSWER (RV): C"),
        ("C10", "ANSWER: mildly reduced", "ANSWER: RV mildly reduced"),
        ("C10", "C10: C", "C12: C"),
        ("C10", "B: SSFP cine, good quality.", "B-SSFP image."),
        ("C10", "I choose C.", "Most readers would choose C."),
        ("C10", "Function looks mildly reduced.", "That function is mildly reduced would be a stretch."),
        ("C10", "C is right.", "C is an option."),
        ("C10", "ANSWER: C", "ANSWER: C\n\nThe function is normal."),
        ("C10", "ANSWER: B\n\nSo D.", "ANSWER: B\n\nThe nulling is normal, thus precluding D."),
        ("C08", "Walls: B, C", "Levels: B, C"),
        ("C08", "ANSWER: walls B, C", "ANSWER: levels B, C"),
        ("C08", "Walls:\nB, C", "Walls reviewed:\nB, C"),
        ("C08", "The septal wall is hypokinetic.", "The septal wall is thickened."),
        ("C08", "Hypokinetic walls: B, C", "Enhancing walls: B, C"),
        ("C08", "A, B, C, D", "A. B. C. D."),
        (
            "C08",
            "Anterior, septal, inferior and lateral wall",
            "Anterior wall\nSeptal wall\nInferior wall\nLateral wall",
        ),
        ("C08", "ANSWER: A, B, C, D", "ANSWER: A|B|C|D"),
        ("C08", "1. A\n2. C", "1. C\n2. A"),
        ("C08", "ANSWER: B (90 %), C (80 %)", "ANSWER: B (80 %), C (20 %)"),
        ("C08", "ANSWER: B, C", "ANSWER: B, C\n\nThe inferior wall is normal."),
        ("C08", "ANSWER: B, C", "ANSWER: B, C\n\nI would also include the lateral wall."),
        (
            "C08",
            "| Wall | Abnormal |\n|---|---|\n| A | yes |\n| B | no |",
            "| Wall | Artefact |\n|---|---|\n| A | yes |\n| B | no |",
        ),
        ("C08", "B and C move abnormally.", "The claim that B and C move abnormally is unsupported."),
        ("C19", "Small effusion.", "No effusion; small effusion behind the LV."),
        ("L01", "No LGE.", "No LGE; LGE in the septum."),
        ("D02", "Most likely HCM.", "Family history of HCM."),
        (
            "L03",
            '{"answer": "B"}',
            '[{"question": "L03", "answer": "B"}, {"question": "L04", "answer": "C"}]',
        ),
        (
            "L03",
            '{"selected": [{"key": "B"}], "rejected": [{"key": "A"}, {"key": "D"}]}',
            '{"schema": {"answer": "B"}}',
        ),
    ],
)
def test_what_is_not_certain_is_not_read(code: str, text: str, uncertain: str) -> None:
    assert keys(code, text) != ""
    assert keys(code, uncertain) == ""


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            "L05",
            "ANSWER: A\n\nIs it more? Yes, and it reaches the border. It should be transmural.\n\nFinal: D",
        ),
        ("T04", "Ich würde C wählen. D} \\] Systole: C (inferior). typo. Circumferential subendocardial."),
        ("T01", "leaving C., Regional,, C"),
    ],
)
def test_replies_that_stopped_the_judge_are_read_or_unread(code: str, text: str) -> None:
    assert keys(code, text) in {"", "D"}


def test_an_argument_against_an_option_leaves_the_answer() -> None:
    assert (
        keys("D02", "ANSWER: B\n\nNo oedema; normal nulling argues against amyloid and thus against D, in")
        == "B"
    )


def test_no_reply_stops_the_judge() -> None:
    dice = random.Random(8)
    texts = [reply.text for half in ("hostile", "twelfth", "thin") for reply in written_replies(half)]
    pieces = [piece for text in texts for piece in re.split(r"(?<=[.!?:,;\n])\s*", text) if piece.strip()]
    codes = [code for code, subtask in SUBTASKS.items() if subtask.options]
    for _ in range(1000):
        signs = dice.choice((" ", "\n", ", "))
        keys(dice.choice(codes), signs.join(dice.choice(pieces) for _ in range(dice.randint(1, 5))))
