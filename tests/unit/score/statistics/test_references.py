"""Chance references and skill (protocol 8.3)."""

from itertools import combinations

import numpy as np
import pytest

from cardiolens.score.statistics import metrics, references
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.patient_states import AnswerMasks, Choices, Sets, state_of


def masks(answers: list[str]) -> np.ndarray:
    return np.array([sum(1 << "ABCDE".index(key) for key in answer) for answer in answers], dtype=np.int64)


def state(answer_type: str, gold: list[str], size: int) -> Choices | Sets:
    answered = AnswerMasks(masks(gold), masks(gold), size)
    return state_of(answer_type, answered, np.zeros(len(gold), dtype=np.int64), 1)


def test_the_best_constant_of_a_choice_is_the_mode_or_better() -> None:
    gold = ["A"] * 10 + ["B"] * 20 + ["C"] * 70
    best = references.best_constant("ordinal", state("ordinal", gold, 3), np.ones(3, dtype=bool))
    assert best["accuracy"] == pytest.approx(0.7)
    assert best["macro_f1"] == pytest.approx(0.27451, abs=1e-4)
    assert best["balanced_accuracy"] == pytest.approx(1 / 3)
    assert best["within_one"] == pytest.approx(1.0)  # always B
    assert best["mean_rank_error"] == pytest.approx(0.4)  # always C: 2 * .1 + .2
    assert best["kappa"] == 0


def test_the_best_constant_set_is_the_best_of_all_sets() -> None:
    dice = np.random.default_rng(5)
    for _ in range(20):
        gold = ["".join(key for key in "ABCD" if dice.random() < share) or "A" for share in dice.random(9)]
        best = references.best_constant("multi", state("multi", gold, 4), np.ones(4, dtype=bool))["micro_f1"]
        every = []
        for size in (1, 2, 3, 4):
            for chosen in combinations("ABCD", size):
                right = sum(len(set(answer) & set(chosen)) for answer in gold)
                every.append(2 * right / (size * len(gold) + sum(map(len, gold))))
        assert best.item() == pytest.approx(max(every))


def test_skill_is_zero_at_the_reference_and_one_at_the_top() -> None:
    score: Floats = np.array([0.7, 1.0, 0.4])
    assert references.skill(score, np.array(0.7)) == pytest.approx([0, 1, -1])
    assert np.isnan(references.skill(np.array([1.0]), np.array([1.0])))


def test_guesses_approach_their_expectations() -> None:
    gold = masks(["A"] * 60 + ["B"] * 30 + ["C"] * 10)
    found = references._guesses("D01", "single", 3, gold.tobytes(), 2026)
    assert found["uniform"]["accuracy"] == pytest.approx(1 / 3, abs=0.02)
    assert found["prevalence"]["accuracy"] == pytest.approx(0.6**2 + 0.3**2 + 0.1**2, abs=0.02)
    assert found["uniform"]["kappa"] == pytest.approx(0, abs=0.03)


def test_uniform_sets_are_never_empty() -> None:
    gold = masks(["A"] * 50)
    found = references._guesses("L02", "multi", 2, gold.tobytes(), 1)["uniform"]
    assert found["micro_f1"] == pytest.approx(2 * 2 / 3 / (1 + 4 / 3), abs=0.02)  # of {A}, {B}, {A, B}


def test_guesses_differ_by_subtask_and_seed_and_repeat() -> None:
    gold = masks(["A", "B", "C"] * 10).tobytes()
    first = references._guesses("C01", "single", 3, gold, 1)
    references._guesses.cache_clear()
    assert references._guesses("C01", "single", 3, gold, 1) == first
    assert references._guesses("C06", "single", 3, gold, 1) != first
    assert references._guesses("C01", "single", 3, gold, 2) != first


def test_metrics_of_multi_select_need_no_classes() -> None:
    perfect = state("multi", ["AB", "C"], 3)
    assert metrics.of_state("multi", perfect, np.ones(3, dtype=bool))["micro_f1"] == 1
