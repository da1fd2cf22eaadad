"""The declared comparison or question: its own 5 %, in its own direction."""

from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.config.sweep_factors import PrimaryQuestionSpec, PrimarySpec
from cardiolens.score.claims.declared import declared_row, when_declared
from cardiolens.score.claims.sentences import sentence
from cardiolens.score.statistics.statistic import Row
from cardiolens.storage.schemas import COMPARISONS
from cardiolens.storage.tables import from_rows

DECLARED = PrimarySpec(model="a", versus="b", tier=1)


def rows(p: float | None, **changes: Any) -> list[Row]:
    """Model a is 5 points better than b; Holm over the family of models would not carry it."""
    row = {
        **{"factor": "model", "level": "a", "versus": "b", "metric": "primary", "tier": 1, "p": p},
        **{"difference": 5.0, "low": 1.0, "high": 9.0, "n_patients": 60, "n_items": 600, "method": ""},
        **{"p_adjusted": 1.0, "adjustment": "holm", "family": "models", "family_size": 300},
        **{"simulated": False, "decision": "open"},
    }
    made: list[Row] = from_rows([row | changes], COMPARISONS).to_pylist()
    return made


def found(declared: PrimarySpec = DECLARED, p: float = 0.01, answered: int | None = 0, **changes: Any) -> Row:
    row = declared_row(declared, answered, rows(p, **changes))
    assert row is not None
    return row


def test_it_is_tested_alone_at_five_percent() -> None:
    row = found(p=0.04)
    assert (row["decision"], row["family"], row["family_size"]) == ("higher", "declared", 1)
    assert "claimed (p = 0.04, declared before the run and tested alone)" in sentence(row)
    assert found(p=0.06)["decision"] == "open"


def test_it_has_the_declared_direction() -> None:
    row = found(PrimarySpec(model="b", versus="a", tier=1))
    assert row["decision"] == "lower"
    assert sentence(row).startswith("b − a, score on tier 1: lower by 5.0 points (95 % CI 1.0 to 9.0; ")


def test_items_that_fell_out_can_take_it_back() -> None:
    for declared in (DECLARED, PrimarySpec(model="b", versus="a", tier=1)):
        row = found(declared, low_bound=-1.0, high_bound=11.0, n_dropped=9)
        assert row["decision"] == "open"


@pytest.mark.parametrize(
    ("declared", "changes"),
    [
        (PrimarySpec(model="a", versus="c", tier=1), {}),
        (PrimarySpec(model="a", versus="b", tier=2), {}),
        (DECLARED, {"simulated": True}),
        (DECLARED, {"p": None}),
    ],
)
def test_without_a_tested_comparison_of_both_models_there_is_no_row(
    declared: PrimarySpec, changes: dict[str, Any]
) -> None:
    assert declared_row(declared, 0, rows(**{"p": 0.01, **changes})) is None


@pytest.mark.parametrize(
    ("answered", "words"),
    [
        (480, "declared when 480 answers were there already"),
        (1, "declared when 1 answer was there already"),
        (None, "declared when it is not known how many answers were there already"),
    ],
)
def test_declared_after_looking_it_is_one_of_its_family(answered: int | None, words: str) -> None:
    """Alone p = 0.01 would carry it, Holm's 1.0 does not."""
    row = found(answered=answered)
    assert (row["decision"], row["family_size"]) == ("open", 300)
    assert "not claimed (p = 1 after Holm over 300" in sentence(row)
    assert when_declared(answered) == words


@pytest.fixture(scope="module")
def over_arms(better_prompt: list[Row]) -> list[Row]:
    return [row for row in better_prompt if row["arm_id"] is None]


def test_a_question_over_all_models_is_tested_alone(over_arms: list[Row]) -> None:
    row = declared_row(PrimaryQuestionSpec(factor="prompt", level="reasoning", tier=1), 0, over_arms)
    assert row is not None
    assert (row["decision"], row["n_models"]) == ("higher", 3)
    assert "declared before the run and tested alone" in sentence(row)


@pytest.mark.parametrize(("factor", "level"), [("selector", "random"), ("budget", None)])
def test_an_equivalence_has_its_own_test(over_arms: list[Row], factor: str, level: str | None) -> None:
    declared = PrimaryQuestionSpec(factor=factor, level=level, tier=1, claim="equivalence")
    early, late = (declared_row(declared, answered, over_arms) for answered in (0, 7))
    assert early is not None
    assert late is not None
    assert early["within_p_adjusted"] == early["within_p"] == late["within_p"] < late["within_p_adjusted"]
    assert "tested alone" in sentence(early)
    assert "tested alone" not in sentence(late)
    assert f"after Holm over {late['family_size']}" in sentence(late)


def test_what_no_setting_answers_has_no_row(over_arms: list[Row]) -> None:
    assert declared_row(PrimaryQuestionSpec(factor="control", level="blind", tier=1), 0, over_arms) is None


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
