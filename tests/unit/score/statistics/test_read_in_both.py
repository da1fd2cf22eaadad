"""Differences that come of replies that were cut."""

import random
from typing import Any

import pytest
from made_verdicts import of_arm

from bench.claims import arms_of, compared
from cardiolens.score.claims.sentences import sentence
from cardiolens.score.statistics.comparisons import comes_of_reading, decided
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.statistic import Row

PATIENTS = 120
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
                lost = {"parsed": [], "parse_status": "truncated"} if is_lost else {}
                rows.append(of_arm(arm.arm_id, f"p{number:03d}", "L01", gold, given) | lost)
    return arms, rows


def pooled(metric: str, cut: float, bolder: float = 0.0) -> Row:
    """The comparison over all models on tier 1."""
    found = compared(*replies(cut, bolder), 300, 300)[1]
    (row,) = [
        row
        for row in found
        if (row["metric"], row["n_models"], row["tier"]) == (metric, 3, 1) and row["factor"] == "prompt"
    ]
    return row


def test_replies_that_differ_by_cuts_alone_are_no_sign_of_caution() -> None:
    row = pooled("criterion", cut=0.5)
    assert row["p"] < 0.05
    assert decided(row | {"p_adjusted": 0.01, "read_difference": None})["decision"] != "open"
    assert decided(row | {"p_adjusted": 0.01})["decision"] == "open"
    assert row["read_difference"] == pytest.approx(0)
    assert row["n_unread"] > 0 == row["n_unread_versus"]
    assert row["decision"] == "open"
    words = sentence(row)
    assert " against 0 replies were cut, refused or not parsed, and on " in words
    assert "items read on both sides it is 0.00" in words


def test_a_lower_score_is_a_lower_score_and_says_what_of_it_was_cut() -> None:
    row = pooled("primary", cut=0.5)
    assert row["decision"] == "lower"
    assert "were cut, refused or not parsed" in sentence(row)


def test_bolder_answers_are_claimed_where_all_are_read() -> None:
    row = pooled("criterion", cut=0.0, bolder=0.4)
    assert (row["decision"], row["read_difference"]) == ("lower", None)
    assert "not parsed" not in sentence(row)


@pytest.mark.parametrize(
    ("difference", "read", "explains"),
    [(-16.3, 0.0, True), (-10.0, -9.0, False), (-10.0, -7.9, True), (2.0, -2.0, True), (0.0, 0.0, False)],
)
def test_a_fifth_is_much(difference: float, read: float, explains: bool) -> None:
    assert comes_of_reading({"difference": difference, "read_difference": read}) is explains
