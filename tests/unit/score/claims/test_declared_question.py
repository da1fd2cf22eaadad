"""A question over all models that was declared before the run (protocol 17.10)."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[4]))
from cardiolens.score.claims.declared_question import declared_question

from bench.claims import arms_of, verdicts
from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.config.sweep_factors import PrimaryQuestionSpec
from cardiolens.score.claims.declared import Declaration, DeclaredQuestion
from cardiolens.score.statistics.factors import families
from cardiolens.score.statistics.pooled_questions import pooled_questions
from cardiolens.score.statistics.scores import score
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.tables import from_rows

MODELS = ("a", "b", "c")


@pytest.fixture(scope="module")
def scores() -> list[dict[str, Any]]:
    arms = arms_of(("clinical", "random@1"), ("8", "16"), ("standard", "reasoning"), MODELS)
    rows = verdicts(arms, 60, np.random.default_rng([11, 1]), better=0.4)
    pooled = pooled_questions(arms)
    return score(from_rows(rows, VERDICTS), 1, 200, 1, families(arms), pooled=pooled, swaps=200).to_pylist()


def answer(scores: list[dict[str, Any]], question: DeclaredQuestion) -> tuple[str, str]:
    (finding,) = declared_question(scores, question).findings
    return finding.verdict, finding.sentence


@pytest.mark.full
def test_it_is_tested_alone(scores: list[dict[str, Any]]) -> None:
    verdict, sentence = answer(
        scores, DeclaredQuestion("prompt", "reasoning", 1, "difference", Declaration())
    )
    assert verdict == "supported"
    assert "declared before the run and tested alone" in sentence
    assert "over 3 models" in sentence


@pytest.mark.parametrize(("factor", "level"), [("selector", "random"), ("budget", None)])
def test_an_equivalence_has_its_own_test(
    scores: list[dict[str, Any]], factor: str, level: str | None
) -> None:
    early, late = (
        answer(scores, DeclaredQuestion(factor, level, 1, "equivalence", Declaration(answered)))
        for answered in (0, 7)
    )
    assert "tested alone" in early[1]
    assert "after Holm over 6" not in early[1]
    assert "tested alone" not in late[1]
    assert "after Holm over 6, declared when 7 answers were there already" in late[1]


def test_what_no_setting_answers_is_said(scores: list[dict[str, Any]]) -> None:
    verdict, sentence = answer(scores, DeclaredQuestion("control", "blind", 1, "difference", Declaration()))
    assert verdict == "cannot tell"
    assert "nothing can be said" in sentence


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


def test_simulated_readers_answer_no_question() -> None:
    words = "primary={factor: budget, tier: 1}"
    with pytest.raises(InputError, match="every model is a simulated reader"):
        read_spec(["model=[oracle]", "budget=[8,16]", words])
