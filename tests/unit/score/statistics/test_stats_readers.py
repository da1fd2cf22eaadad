"""Readers with a known fault, and the indices that must show it (protocol 14.5)."""

import numpy as np
import pytest

from cardiolens.score.statistics import collapse, metrics
from cardiolens.score.statistics.items import Ints
from cardiolens.score.statistics.patient_states import AnswerMasks, Choices, Sets

ONE = np.zeros(120, dtype=np.int64)


def indices(gold: Ints, answers: Ints, size: int) -> dict[str, float]:
    confusion = Choices.of(AnswerMasks(1 << gold, 1 << answers, size), ONE, 1).confusion
    return {name: value.item() for name, value in collapse.of_confusion(confusion).items()}


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_a_constant_reader_has_collapse_index_one(size: int) -> None:
    gold = np.random.default_rng(size).integers(0, size, 120)
    for answer in range(size):
        assert indices(gold, np.full(120, answer), size)["collapse_index"] == 1


def test_a_collapsing_reader_collapses_more_the_more_it_gives_up() -> None:
    dice, readers, number = np.random.default_rng(6), 200, 120
    unit = np.repeat(np.arange(readers), number)
    gold = dice.choice(4, readers * number, p=[0.5, 0.25, 0.15, 0.1])
    doubt = dice.random(readers * number)
    means = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        answers = np.where(doubt < share, 0, gold)
        confusion = Choices.of(AnswerMasks(1 << gold, 1 << answers, 4), unit, readers).confusion
        means.append(collapse.of_confusion(confusion)["collapse_index"].mean())
    assert means[0] == 0
    assert means == sorted(means)
    assert means[-1] == 1


def test_a_conservative_reader_loses_recall_and_keeps_precision() -> None:
    dice = np.random.default_rng(1)
    gold = dice.random((120, 5)) < 0.5
    gold[:, 0] = True
    recalls = []
    for dropped in (0.0, 0.3, 0.6):
        found = gold & (dice.random(gold.shape) >= dropped)
        bits = 1 << np.arange(5)
        options = Sets.of(AnswerMasks(gold @ bits, found @ bits, 5), ONE, 1).options
        assert metrics.precision(options).item() == 1
        recalls.append(metrics.recall(options).item())
    assert recalls[0] == 1
    assert recalls == sorted(recalls, reverse=True)


def test_a_uniform_reader_has_hardly_collapsed() -> None:
    dice = np.random.default_rng(2)
    found = [
        indices(dice.integers(0, 4, 120), dice.integers(0, 4, 120), 4)["collapse_index"] for _ in range(50)
    ]
    assert np.mean(found) < 0.02
