"""Null and power experiments of bench.claims on a small scale."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[4]))
from bench.claims import arms_of, claims, compared, verdicts


@pytest.mark.long
@pytest.mark.parametrize("models", [("model",), ("a", "b", "c")])
def test_exchangeable_arms_claim_nothing(models: tuple[str, ...]) -> None:
    arms = arms_of(("clinical", "random@1"), ("16",), ("standard", "reasoning"), models)
    false = []
    for seed in range(10):
        rows = verdicts(arms, 40, np.random.default_rng([3, seed]))
        found = claims(compared(arms, rows, resamples=150, swaps=300)[1])
        claimed = {row["factor"] for row in found} - {"tier"}  # tiers ask different questions
        assert claimed <= {"model"}, "of questions over all models"
        false.append(bool(claimed))
    assert sum(false) <= 2  # headlines of models are families of 5 % on each tier


def test_a_difference_of_ten_points_is_found() -> None:
    arms = arms_of(("clinical",), ("16",), ("standard", "reasoning"))
    rows = verdicts(arms, 120, np.random.default_rng(5), better=0.385)
    found = claims(compared(arms, rows, resamples=150, swaps=300)[1])
    assert any((row["metric"], row["tier"], row["decision"]) == ("primary", 1, "higher") for row in found)
