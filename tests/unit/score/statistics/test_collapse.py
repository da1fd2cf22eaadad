"""Collapse: the vectors of protocol 8.4, readers with a known fault (14.5), the question over all models."""

import random
from typing import Any

import numpy as np
import pytest
from made_verdicts import of_arm

from bench.claims import arms_of, compared
from cardiolens.score.statistics import metrics
from cardiolens.score.statistics.items import Floats, Ints
from cardiolens.score.statistics.statistic import Row


def square(rows: list[list[int]]) -> Floats:
    return np.pad(np.array(rows, dtype=float), ((0, 0), (0, 1)))


def values(table: Floats) -> dict[str, float]:
    return {name: float(value) for name, value in metrics.of_confusion(table).items()}


CONSTANT = {"entropy": 0, "entropy_deficit": 0.7298, "modal_share": 1, "absorption": 1, "shift": 0.3}
LEANING = {"entropy": 0.4907, "entropy_deficit": 0.2392, "modal_share": 0.84, "modal_excess": 0.14}
LEANING |= {"absorption": 0.6667, "collapse_index": 0.3396, "shift": 0.14}


@pytest.mark.parametrize(
    ("table", "exact", "rounded"),
    [
        ([[0, 0, 10], [0, 0, 20], [0, 0, 70]], {"collapse_index": 1}, CONSTANT),
        ([[2, 1, 7], [1, 6, 13], [2, 4, 64]], {}, LEANING),
        ([[10, 0, 0], [0, 20, 0], [0, 0, 70]], {"collapse_index": 0, "entropy_deficit": 0, "shift": 0}, {}),
    ],
    ids=["constant", "leaning", "perfect"],
)
def test_vectors_of_collapse(
    table: list[list[int]], exact: dict[str, float], rounded: dict[str, float]
) -> None:
    found = values(square(table))
    assert {name: found[name] for name in exact} == exact
    assert {name: found[name] for name in rounded} == pytest.approx(rounded, abs=1e-4)


def test_unparsed_answers_stay_out_and_are_shared_beside() -> None:
    table = square([[1, 0], [0, 1]])
    table[0, 2] = 2
    found = values(table)
    assert found["unparsed"] == 0.5
    assert found["modal_share"] == 0.5
    assert found["entropy"] == found["entropy_deficit"] + 1 == pytest.approx(1)


@pytest.mark.parametrize(
    ("index", "share", "excess", "flag"),
    [(0.3, 0.1, 0, True), (0.1, 0.8, 0.1, True), (0.1, 0.9, 0.05, False)],
)
def test_the_flag(index: float, share: float, excess: float, flag: bool) -> None:
    indices = {"collapse_index": index, "modal_share": share, "modal_excess": excess}
    assert metrics.is_collapsed(indices, excess_low=0.06) is flag
    assert not metrics.is_collapsed(indices, excess_low=0.04)


def test_a_careful_reader_of_a_rare_finding_has_not_collapsed() -> None:
    """Accuracy 98 % at a prevalence of 5 % with sensitivity .6."""
    found = values(square([[950, 0], [20, 30]]))
    assert found["modal_excess"] == pytest.approx(0.02)
    assert found["absorption"] * (1 - found["entropy"]) > metrics.COLLAPSE_INDEX
    assert found["collapse_index"] < 0.15


def confusion_of(gold: Ints, answers: Ints, size: int) -> Floats:
    return np.bincount(gold * (size + 1) + answers, minlength=size * (size + 1)).reshape(size, size + 1) * 1.0


def test_a_collapsing_reader_collapses_more_the_more_it_gives_up_and_a_uniform_one_hardly() -> None:
    dice, readers, number = np.random.default_rng(6), 200, 120
    gold = dice.choice(4, (readers, number), p=[0.5, 0.25, 0.15, 0.1])
    doubt = dice.random((readers, number))
    means = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        answers = np.where(doubt < share, 0, gold)
        tables = [confusion_of(true, said, 4) for true, said in zip(gold, answers, strict=True)]
        means.append(metrics.of_confusion(np.stack(tables))["collapse_index"].mean())
    assert means[0] == 0
    assert means == sorted(means)
    assert means[-1] == 1
    uniform = [confusion_of(*dice.integers(0, 4, (2, number)), 4) for _ in range(50)]
    assert metrics.of_confusion(np.stack(uniform))["collapse_index"].mean() < 0.02


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
