"""The worked values of protocol 8.1, and states that add up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cardiolens.score.statistics import metrics
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.patient_states import Choices, Sets


def confusion(pairs: list[tuple[int, int | None]], size: int) -> Floats:
    """A matrix of (gold, predicted) pairs; None is unparsed."""
    table = np.zeros((size, size + 1))
    for gold, predicted in pairs:
        table[gold, size if predicted is None else predicted] += 1
    return table


def square(rows: list[list[int]]) -> Floats:
    """A matrix without unparsed answers."""
    return np.pad(np.array(rows, dtype=float), ((0, 0), (0, 1)))


def sets(answers: list[tuple[str, str]], size: int = 5) -> Sets:
    """The state of (gold, predicted) sets, all of one patient."""
    overlaps, options = np.zeros((1, size + 1, size + 1)), np.zeros((1, size, 3))
    for gold, predicted in answers:
        right, wrong = set(gold) & set(predicted), set(gold) ^ set(predicted)
        overlaps[0, len(right), len(wrong)] += 1
        for at, key in enumerate("ABCDE"[:size]):
            options[0, at] += [
                key in right,
                key in set(predicted) - set(gold),
                key in set(gold) - set(predicted),
            ]
    return Sets(overlaps, options)


def percent(value: Floats) -> float:
    return float(100 * value.item())


ALL = np.ones(3, dtype=bool)
CONSTANT = square([[0, 0, 10], [0, 0, 20], [0, 0, 70]])
MIXED = square([[2, 1, 7], [1, 6, 13], [2, 4, 64]])


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([("AB", "ABCDE")], (40.0, 100.0, 57.142857)),
        ([("AB", "BCD")], (33.333333, 50.0, 40.0)),
        ([("AB", "ABCDE"), ("AB", "BCD")], (37.5, 75.0, 50.0)),
        ([("AB", "")], (0.0, 0.0, 0.0)),
    ],
)
def test_multi_select_pools_options(
    answers: list[tuple[str, str]], expected: tuple[float, float, float]
) -> None:
    options = sets(answers).options
    found = [percent(metric(options)) for metric in (metrics.precision, metrics.recall, metrics.micro_f1)]
    assert found == pytest.approx(expected, abs=1e-4)


def test_means_over_items_and_options_of_multi_select() -> None:
    state = sets([("AB", "ABCDE"), ("AB", "BCD"), ("C", "C"), ("D", "")])
    assert metrics.sample_f1(state.overlaps).item() == pytest.approx((4 / 7 + 2 / 5 + 1 + 0) / 4)
    assert metrics.jaccard(state.overlaps).item() == pytest.approx((2 / 5 + 1 / 4 + 1 + 0) / 4)
    assert metrics.exact_match(state.overlaps).item() == pytest.approx(1 / 4)
    # A 1/0/1, B 2/0/0, C 1/2/0, D 0/2/1, E 0/1/0 (tp, fp, fn)
    assert metrics.option_macro_f1(state.options).item() == pytest.approx((2 / 3 + 1 + 1 / 2 + 0 + 0) / 5)


def test_an_option_never_true_and_never_chosen_stays_out_of_the_mean() -> None:
    assert metrics.option_macro_f1(sets([("A", "A")]).options).item() == 1


def test_ordinal_check_values() -> None:
    table = confusion(list(zip([0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 1, 2, 2, 2, 3, 1], strict=True)), 4)
    assert metrics.accuracy(table) == pytest.approx(0.625)
    assert metrics.within_one(table) == pytest.approx(0.875)
    assert metrics.mean_rank_error(table) == pytest.approx(0.5)
    assert metrics.weighted_kappa(table) == pytest.approx(0.625)


def test_an_unparsed_rank_is_wrong_and_far_but_outside_kappa() -> None:
    pairs: list[tuple[int, int | None]] = [(0, 0), (1, 1), (3, 2), (2, None)]
    table, without = confusion(pairs, 4), confusion(pairs[:-1], 4)
    assert metrics.accuracy(table) == pytest.approx(0.5)
    assert metrics.within_one(table) == pytest.approx(0.75)
    assert metrics.mean_rank_error(table) == pytest.approx((0 + 0 + 1 + 3) / 4)
    assert metrics.weighted_kappa(table) == pytest.approx(metrics.weighted_kappa(without))


@pytest.mark.parametrize(
    ("table", "accuracy", "balanced", "macro", "kappa"),
    [(CONSTANT, 0.7, 0.33333, 0.27451, 0.0), (MIXED, 0.72, 0.47143, 0.49503, 0.27273)],
)
def test_confusion_vectors(
    table: Floats, accuracy: float, balanced: float, macro: float, kappa: float
) -> None:
    assert metrics.accuracy(table) == pytest.approx(accuracy, abs=1e-4)
    assert metrics.balanced_accuracy(table, ALL) == pytest.approx(balanced, abs=1e-4)
    assert metrics.macro_f1(table, ALL) == pytest.approx(macro, abs=1e-4)
    assert metrics.kappa(table) == pytest.approx(kappa, abs=1e-4)


def test_kappa_of_two_raters() -> None:
    assert metrics.kappa(square([[40, 5], [5, 50]])) == pytest.approx(0.79798, abs=1e-4)


def test_nothing_to_measure_is_undefined() -> None:
    nothing = np.zeros((3, 4))
    for value in metrics.of_ranks(Choices(nothing[None]), ALL).values():
        assert np.isnan(value).all()
    for value in metrics.of_sets(sets([])).values():
        assert np.isnan(value).all()
    assert np.isnan(
        metrics.kappa(square([[5, 0], [0, 0]]))
    )  # one class alone leaves no chance to correct for


def test_an_unparsed_answer_counts_against_its_class() -> None:
    table = confusion([(0, 0), (0, None), (1, 1)], 2)
    assert metrics.class_f1(table) == pytest.approx([2 / 3, 1])
    assert metrics.balanced_accuracy(table, np.ones(2, dtype=bool)) == pytest.approx(0.75)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
@settings(max_examples=40)
def test_states_add_up_however_they_are_split(seed: int, parts: int) -> None:
    dice = np.random.default_rng(seed)
    tables = dice.integers(0, 50, size=(30, 4, 5)).astype(float)
    whole = Choices(tables.sum(axis=0)[None])
    pieces = np.array_split(dice.permutation(tables), parts)
    split = Choices(np.zeros((1, 4, 5)))
    for piece in pieces:
        split += Choices(piece.sum(axis=0)[None])
    once, again = (metrics.of_ranks(state, np.ones(4, dtype=bool)) for state in (whole, split))
    assert {name: value.item() for name, value in once.items()} == {
        name: value.item() for name, value in again.items()
    }


def test_resampling_sums_patients_by_weight() -> None:
    state = Choices(np.arange(2 * 2 * 3, dtype=float).reshape(2, 2, 3))
    weights: NDArray[np.float64] = np.array([[1.0, 1.0], [2.0, 0.0]])
    drawn = state.resampled(weights)
    assert (drawn.confusion[0] == state.confusion.sum(axis=0)).all()
    assert (drawn.confusion[1] == 2 * state.confusion[0]).all()
