"""Differences that come of replies that were cut (protocol 17.8)."""

import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[4]))
from bench.claims import arms_of, findings
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.read_in_both import ReadInBoth

GATE, PATIENTS = "L01", 120
MODELS = ("a", "b", "c")
ABNORMAL = "B"


def replies(cut: float, bolder: float = 0.0) -> tuple[list[ArmFactors], list[dict[str, Any]]]:
    """Two prompts with the same answers; the second cuts some abnormal ones, or calls more abnormal."""
    arms = arms_of(("clinical",), ("16",), ("standard", "reasoning"), MODELS)
    rows: list[dict[str, Any]] = []
    for number in range(PATIENTS):
        dice = random.Random(number)
        gold = dice.choice("AB")
        for model in MODELS:
            answer = gold if dice.random() < 0.8 else "AB"[gold == "A"]
            is_cut, is_bolder = (dice.random() < share for share in (cut, bolder))
            for arm in (arm for arm in arms if arm.model == model):
                is_second = arm.prompt == "reasoning"
                given = ABNORMAL if is_second and is_bolder else answer
                is_lost = is_second and is_cut and given == ABNORMAL
                rows.append(verdict(arm.arm_id, f"p{number:03d}", gold, "" if is_lost else given))
    return arms, rows


def verdict(arm: str, patient: str, gold: str, answer: str) -> dict[str, Any]:
    names = {"arm_id": arm, "subtask": GATE, "tier": 1, "answer_type": "single", "channel": "answer"}
    names |= {"qa_id": f"{patient}:{GATE}", "patient_id": patient, "sequence": "lge", "status": "judged"}
    status = "ok" if answer else "truncated"
    return names | {
        "request_key": f"{arm}/{patient}",
        "parse_status": status,
        "parsed": [answer] if answer else [],
        "gold": [gold],
        "counts": [("options", 2.0)],
    }


def said(cut: float, bolder: float = 0.0) -> list[Finding]:
    return findings(*replies(cut, bolder), resamples=300, swaps=300)[0]


def of_calls(found: list[Finding]) -> list[Finding]:
    return [one for one in found if "the criterion for calling" in one.sentence]


def test_replies_that_differ_by_cuts_alone_are_no_sign_of_caution() -> None:
    found = of_calls(said(cut=0.5))
    assert found
    assert {one.verdict for one in found} == {"cannot tell"}
    (pooled,) = [one for one in found if "over 3 models" in one.sentence]
    assert "cannot be said to change the criterion for calling" in pooled.sentence
    assert " against 0 replies were cut, refused or not parsed, and on " in pooled.sentence
    assert "items read in both it is 0.00" in pooled.sentence


def test_a_lower_score_is_a_lower_score_and_says_what_of_it_was_cut() -> None:
    (pooled,) = [one for one in said(cut=0.5) if "lowers the score on tier 1 over 3 models" in one.sentence]
    assert pooled.side == "below"
    assert "were cut, refused or not parsed" in pooled.sentence


def test_bolder_answers_are_claimed_where_all_are_read() -> None:
    (pooled,) = [one for one in of_calls(said(0.0, 0.4)) if "over 3 models" in one.sentence]
    assert "lowers the criterion" in pooled.sentence
    assert pooled.side == "below"
    assert "not parsed" not in pooled.sentence


def test_the_other_side_has_the_other_counts() -> None:
    read = ReadInBoth(-0.1, 9, 1, 2)
    assert read.reversed == ReadInBoth(0.1, 9, 2, 1)
    row = read.row(("primary", "tier:1"))
    assert ReadInBoth.of_row(row) == ReadInBoth(-10.0, 9, 1, 2)


@pytest.mark.parametrize(
    ("difference", "read", "explains"),
    [(-16.3, 0.0, True), (-10.0, -9.0, False), (-10.0, -7.9, True), (2.0, -2.0, True), (0.0, 0.0, False)],
)
def test_a_fifth_is_much(difference: float, read: float, explains: bool) -> None:
    assert replace(ReadInBoth(0, 9, 1, 2), value=read).explains(difference) is explains
