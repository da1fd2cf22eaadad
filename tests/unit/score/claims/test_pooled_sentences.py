"""Sentences on questions pooled over models, and pairs of arms that are only explored (protocol 17.6)."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[4]))
from bench.claims import arms_of, findings, verdicts
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.statistics.factors import ArmFactors


def said(arms: list[ArmFactors], patients: int, seed: int, better: float = 0.0) -> list[Finding]:
    rows = verdicts(arms, patients, np.random.default_rng([11, seed]), better=better)
    return findings(arms, rows, resamples=200, swaps=200)[0]


def of_tier_1(found: list[Finding], words: str) -> Finding:
    (one,) = [one for one in found if words in one.sentence and "score on tier 1 over" in one.sentence]
    return one


@pytest.fixture(scope="module")
def better_prompt() -> list[Finding]:
    arms = arms_of(("clinical", "random@1"), ("8", "16"), ("standard", "reasoning"), ("a", "b", "c"))
    return said(arms, 60, 1, better=0.4)


@pytest.mark.full
def test_an_effect_of_all_models_is_one_sentence_with_its_spread(better_prompt: list[Finding]) -> None:
    found = of_tier_1(better_prompt, "Prompt reasoning instead of standard raises")
    assert found.verdict == "supported"
    assert "after Holm over 14, 60 patients" in found.sentence
    assert "It goes up in 3 of 3 models; between models it has an SD of " in found.sentence
    assert " and a next model is expected between " in found.sentence
    assert any("raises the score on tier 1 of b: " in one.sentence for one in better_prompt)


def test_what_does_nothing_is_no_claim_and_may_be_equivalent(better_prompt: list[Finding]) -> None:
    assert of_tier_1(better_prompt, "Selection random instead of clinical").verdict == "cannot tell"
    assert of_tier_1(better_prompt, "K = 16 frames instead of 8").verdict == "cannot tell"
    both = "random and clinical selection"
    assert any(both in one.sentence and "tier 1 over 3 models" in one.sentence for one in better_prompt)


def test_pairs_of_single_arms_are_explored_and_never_claimed(better_prompt: list[Finding]) -> None:
    pairs = [one for one in better_prompt if "exploratory" in one.sentence]
    assert any(
        "Prompt reasoning instead of standard may raise the score on tier 1 (a, " in one.sentence
        for one in pairs
    )
    assert {one.verdict for one in pairs} == {"cannot tell"}
    assert all("false discovery rate" in one.sentence for one in pairs)
    claimed = [one.sentence for one in better_prompt if one.verdict != "cannot tell"]
    assert not [one for one in claimed if "selection, K = " in one]


def test_the_claim_for_one_model_names_it() -> None:
    arms = arms_of(("clinical",), ("16",), ("standard", "reasoning"))
    found = said(arms, 120, 2, better=0.385)
    (one,) = [one for one in found if "the score on tier 1 of model: " in one.sentence]
    assert one.verdict == "supported"
    assert "models" not in one.sentence


@pytest.mark.long
def test_models_that_nothing_changes_claim_nothing() -> None:
    arms = arms_of(("clinical", "random@1"), ("16",), ("standard", "reasoning"), ("a", "b", "c"))
    found = [one for seed in range(10) for one in said(arms, 40, seed)]
    claimed = [one.sentence for one in found if " raises " in one.sentence or " lowers " in one.sentence]
    assert [sentence for sentence in claimed if "headline" not in sentence] == []
