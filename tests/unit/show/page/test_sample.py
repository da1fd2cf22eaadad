"""The sample of a portable viewer: bounded whatever the number of arms, the same each time, told in words."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.show.page.case_viewer import sample
from cardiolens.show.page.case_viewer.sample import ENDINGS, sample_of

LETTERS = np.frombuffer(("".join(ENDINGS) + " ").encode(), np.uint8)


def arms(models: int) -> list[ArmFactors]:
    lists = (range(models), ("clinical", "random"), ("8", "16"), ("standard", "reasoning"))
    return [ArmFactors(f"{model}-{rest}", f"m{model}", *rest) for model, *rest in map(list, product(*lists))]


def endings(questions: int, models: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(LETTERS, (questions, 8 * models))


def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MAX_UNSAMPLED", 100), ("FLIPS", 30), ("A_CELL", 3)):
        monkeypatch.setattr(sample, name, value)


@pytest.mark.parametrize("models", [1, 4, 12])
def test_a_sample_is_bounded_whatever_the_number_of_arms(
    monkeypatch: pytest.MonkeyPatch, models: int
) -> None:
    bounds(monkeypatch)
    subtasks = ["C01", "C02", "D01"] * 40
    letters = endings(len(subtasks), models, models)
    drawn = sample_of(letters, subtasks, arms(models))
    assert 2 * 30 / 2 < len(drawn.keys) <= 2 * 30 + 3 * 4 * 3
    assert not drawn.complete
    assert drawn == sample_of(letters, subtasks, arms(models))
    held = {(subtasks[question], letters[question, arm]) for question, arm in drawn.keys}
    assert held == set(product(subtasks, LETTERS[:4]))  # each cell, and nothing that was not asked
    assert f"{len(drawn.keys):,} of {int((letters != ord(' ')).sum()):,} answers" in drawn.words


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10**6))
def test_every_flip_is_held_up_to_the_bound_and_counted(questions: int, seed: int) -> None:
    letters, asked = endings(questions, 2, seed), arms(2)
    flips = {
        (question, one, other)
        for question in range(questions)
        for one, other in product(range(len(asked)), repeat=2)
        if letters[question, one] == ord("r") and letters[question, other] not in (ord("r"), ord(" "))
        if sum(_factors(asked[one])[at] != value for at, value in enumerate(_factors(asked[other]))) == 1
    }
    with pytest.MonkeyPatch.context() as patch:
        bounds(patch)
        patch.setattr(sample, "MAX_UNSAMPLED", -1)
        patch.setattr(sample, "FLIPS", max(len(flips), 1))
        patch.setattr(sample, "A_CELL", 0)
        drawn = sample_of(letters, ["C01"] * questions, asked)
        assert set(drawn.keys) == {(at, arm) for at, *both in flips for arm in both}
        assert f"all {len(flips):,} flips" in drawn.words
        if len(flips) > 1:
            patch.setattr(sample, "FLIPS", len(flips) - 1)
            fewer = sample_of(letters, ["C01"] * questions, asked)
            assert set(fewer.keys) <= set(drawn.keys)
            assert f"{len(flips) - 1:,} of {len(flips):,} flips" in fewer.words


def _factors(arm: ArmFactors) -> tuple[str, ...]:
    return arm.model, arm.selector, arm.budget, arm.prompt


def test_a_small_run_is_held_whole() -> None:
    letters = endings(30, 1, 7)
    drawn = sample_of(letters, ["C01"] * 30, arms(1))
    assert drawn.complete
    assert set(drawn.keys) == {tuple(place) for place in np.argwhere(letters != ord(" ")).tolist()}
