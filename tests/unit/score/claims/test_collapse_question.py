"""Whether answers spread over fewer categories than the truth, over all models."""

import random
import sys
from pathlib import Path
from typing import Any

import pytest
from made_verdicts import of_arm

sys.path.insert(0, str(Path(__file__).parents[4]))
from bench.claims import arms_of, compared
from cardiolens.score.statistics.statistic import Row

MODELS = ("a", "b", "c")


def answers(into_first: float, wrong: float) -> tuple[list[Any], list[dict[str, Any]]]:
    """Two classes, of which a share is called the first, and a share of the others is wrong either way."""
    arms = arms_of(("clinical",), ("16",), ("standard",), MODELS)
    rows: list[dict[str, Any]] = []
    for number in range(120):
        dice = random.Random(number)
        gold = dice.choice("AB")
        for arm in arms:
            answer = "A" if dice.random() < into_first else gold
            answer = "AB"[answer == "A"] if dice.random() < wrong else answer
            rows.append(of_arm(arm.arm_id, f"p{number:03d}", "L01", gold, answer))
    return arms, rows


def pooled(into_first: float, wrong: float = 0.0) -> Row:
    found = compared(*answers(into_first, wrong), 300, 300)[1]
    (row,) = [row for row in found if row["factor"] == "collapse" and row["n_models"] == 3]
    return row


def test_models_that_answer_one_category_have_collapsed() -> None:
    row = pooled(into_first=0.7)
    assert (row["metric"], row["tier"], row["decision"]) == ("entropy_deficit", 1, "higher")
    assert row["n_models_above"] == 3


@pytest.mark.parametrize("wrong", [0.1, 0.3, 0.5])
def test_errors_that_favour_no_category_are_no_collapse(wrong: float) -> None:
    assert pooled(into_first=0.0, wrong=wrong)["decision"] != "higher"
