"""The collapse vectors of protocol 8.4, and readers with a known fault that the index must show (14.5)."""

import numpy as np
import pytest

from cardiolens.score.statistics import metrics
from cardiolens.score.statistics.items import Floats, Ints


def square(rows: list[list[int]]) -> Floats:
    return np.pad(np.array(rows, dtype=float), ((0, 0), (0, 1)))


def values(table: Floats) -> dict[str, float]:
    return {name: float(value) for name, value in metrics.of_confusion(table).items()}


def test_a_constant_reader_has_collapsed() -> None:
    found = values(square([[0, 0, 10], [0, 0, 20], [0, 0, 70]]))
    expected = {
        "entropy": 0,
        "entropy_deficit": 0.7298,
        "modal_share": 1,
        "absorption": 1,
        "collapse_index": 1,
        "shift": 0.3,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-4)
    assert found["collapse_index"] == 1


def test_a_reader_that_leans_to_one_class() -> None:
    found = values(square([[2, 1, 7], [1, 6, 13], [2, 4, 64]]))
    expected = {
        "entropy": 0.4907,
        "entropy_deficit": 0.2392,
        "modal_share": 0.84,
        "modal_excess": 0.14,
        "absorption": 0.6667,
        "collapse_index": 0.3396,
        "shift": 0.14,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-3)
    assert found["collapse_index"] == pytest.approx(0.3396, abs=1e-4)


def test_a_perfect_reader_has_not() -> None:
    found = values(square([[10, 0, 0], [0, 20, 0], [0, 0, 70]]))
    assert (found["collapse_index"], found["entropy_deficit"], found["shift"]) == (0, 0, 0)


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
