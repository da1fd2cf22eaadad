"""Chance references and skill (protocol 8.3)."""

from itertools import combinations

import numpy as np
import pytest

from cardiolens.score.statistics.counting import Part
from cardiolens.score.statistics.items import Floats, Ints
from cardiolens.score.statistics.references import best_constant, guesses, skill


def masks(answers: list[str]) -> Ints:
    return np.array([sum(1 << "ABCDE".index(key) for key in answer) for answer in answers], dtype=np.int64)


def part(kind: str, size: int, subtask: str = "X01") -> Part:
    return Part(subtask, "lge", 1, kind, tuple(range(size)), 1)  # type: ignore[arg-type]


def constants(kind: str, gold: list[str], size: int) -> dict[str, float]:
    flags: Floats = np.array([[key in answer for answer in gold] for key in "ABCDE"[:size]], float)
    best = best_constant(part(kind, size), flags.sum(axis=1, keepdims=True), np.array([float(len(gold))]))
    return {name: float(value[0]) for name, value in best.items()}


def test_the_best_constant_of_a_choice_is_the_mode() -> None:
    gold = ["A"] * 10 + ["B"] * 20 + ["C"] * 70
    assert constants("choice", gold, 3) == {"primary": pytest.approx(0.7)}
    assert constants("diagnosis", gold, 3)["macro_f1"] == pytest.approx(0.27451, abs=1e-4)


def test_the_best_constant_set_is_the_best_of_all_sets() -> None:
    dice = np.random.default_rng(5)
    for _ in range(20):
        gold = ["".join(key for key in "ABCD" if dice.random() < share) or "A" for share in dice.random(9)]
        every = []
        for size in (1, 2, 3, 4):
            for chosen in combinations("ABCD", size):
                right = sum(len(set(answer) & set(chosen)) for answer in gold)
                every.append(2 * right / (size * len(gold) + sum(map(len, gold))))
        assert constants("set", gold, 4)["primary"] == pytest.approx(max(every))


def test_skill_is_zero_at_the_reference_and_one_at_the_top() -> None:
    score: Floats = np.array([0.7, 1.0, 0.4])
    assert skill(score, np.array(0.7)) == pytest.approx([0, 1, -1])
    assert np.isnan(skill(np.array([1.0]), np.array([1.0])))


def test_guesses_approach_their_expectations() -> None:
    found = guesses(part("choice", 3), masks(["A"] * 60 + ["B"] * 30 + ["C"] * 10), 3, 2026)
    assert found["uniform"]["primary"] == pytest.approx(1 / 3, abs=0.02)
    assert found["prevalence"]["primary"] == pytest.approx(0.6**2 + 0.3**2 + 0.1**2, abs=0.02)


def test_uniform_sets_are_never_empty() -> None:
    uniform = guesses(part("set", 2), masks(["A"] * 50), 2, 1)["uniform"]
    assert uniform["primary"] == pytest.approx(2 * 2 / 3 / (1 + 4 / 3), abs=0.02)  # of {A}, {B}, {A, B}


def test_guesses_differ_by_subtask_and_seed_and_repeat() -> None:
    gold = masks(["A", "B", "C"] * 10)
    first = guesses(part("choice", 3, "C01"), gold, 3, 1)
    assert guesses(part("choice", 3, "C01"), gold.copy(), 3, 1) == first
    assert guesses(part("choice", 3, "C06"), gold, 3, 1) != first
    assert guesses(part("choice", 3, "C01"), gold, 3, 2) != first
