"""A question over all models that was declared before the run."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[4]))
from bench.claims import arms_of, compared, verdicts
from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.config.sweep_factors import PrimaryQuestionSpec
from cardiolens.score.claims.declared import declared_row
from cardiolens.score.claims.sentences import sentence
from cardiolens.score.statistics.statistic import Row

MODELS = ("a", "b", "c")


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    arms = arms_of(("clinical", "random@1"), ("8", "16"), ("standard", "reasoning"), MODELS)
    made = verdicts(arms, 60, np.random.default_rng([11, 1]), better=0.4)
    return [row for row in compared(arms, made, 200, 200)[1] if row["arm_id"] is None]


@pytest.mark.full
def test_it_is_tested_alone(rows: list[Row]) -> None:
    row = declared_row(PrimaryQuestionSpec(factor="prompt", level="reasoning", tier=1), 0, rows)
    assert row is not None
    assert (row["decision"], row["n_models"]) == ("higher", 3)
    assert "declared before the run and tested alone" in sentence(row)


@pytest.mark.parametrize(("factor", "level"), [("selector", "random"), ("budget", None)])
def test_an_equivalence_has_its_own_test(rows: list[Row], factor: str, level: str | None) -> None:
    declared = PrimaryQuestionSpec(factor=factor, level=level, tier=1, claim="equivalence")
    early, late = (declared_row(declared, answered, rows) for answered in (0, 7))
    assert early is not None
    assert late is not None
    assert early["within_p_adjusted"] == early["within_p"] == late["within_p"] < late["within_p_adjusted"]
    assert "tested alone" in sentence(early)
    assert "tested alone" not in sentence(late)
    assert f"after Holm over {late['family_size']}" in sentence(late)


def test_what_no_setting_answers_has_no_row(rows: list[Row]) -> None:
    assert declared_row(PrimaryQuestionSpec(factor="control", level="blind", tier=1), 0, rows) is None


def test_it_is_declared_on_the_command_line() -> None:
    words = "primary={factor: selector, level: random, tier: 2, claim: equivalence}"
    spec = read_spec(["model=[tiny]", "selector=[clinical,random]", words])
    assert spec.primary == PrimaryQuestionSpec(factor="selector", level="random", tier=2, claim="equivalence")
    assert spec.compared == ("tiny",)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{factor: selector, level: random, tier: 1}", "add random"),
        ("{factor: selector, level: clinical, tier: 1}", "compares a selector with clinical"),
        ("{factor: prompt, tier: 1}", "compares a prompt with standard"),
        ("{factor: budget, tier: 1}", "give two numbers"),
        ("{factor: budget, level: '8', tier: 1}", "leave out level"),
        ("{factor: slices, level: random, tier: 1}", "primary"),
        ("{factor: prompt, level: reasoning, tier: 1, claim: better}", "primary"),
    ],
)
def test_a_question_that_the_run_cannot_answer_is_refused(given: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_spec(["model=[tiny]", f"primary={given}"])
