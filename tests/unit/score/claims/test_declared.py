"""The declared comparison: its own 5 %, in its own direction."""

from typing import Any

import pytest

from cardiolens.score.claims.declared import Declaration, DeclaredComparison
from cardiolens.score.claims.sentences import sentence
from cardiolens.score.statistics.statistic import Row
from cardiolens.storage.schemas import COMPARISONS
from cardiolens.storage.tables import from_rows

EARLY = Declaration()


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


def found(declared: DeclaredComparison, p: float | None = 0.01, **changes: Any) -> Row:
    row = declared.row_of(rows(p, **changes))
    assert row is not None
    return row


def test_it_is_tested_alone_at_five_percent() -> None:
    row = found(DeclaredComparison("a", "b", 1, EARLY), 0.04)
    assert (row["decision"], row["family"], row["family_size"]) == ("higher", "declared", 1)
    assert "claimed (p = 0.04, declared before the run and tested alone)" in sentence(row)
    assert found(DeclaredComparison("a", "b", 1, EARLY), 0.06)["decision"] == "open"


def test_it_has_the_declared_direction() -> None:
    row = found(DeclaredComparison("b", "a", 1, EARLY))
    assert row["decision"] == "lower"
    assert sentence(row).startswith("b − a, score on tier 1: lower by 5.0 points (95 % CI 1.0 to 9.0; ")


def test_items_that_fell_out_can_take_it_back() -> None:
    for sides in (("a", "b"), ("b", "a")):
        row = found(DeclaredComparison(*sides, 1, EARLY), low_bound=-1.0, high_bound=11.0, n_dropped=9)
        assert row["decision"] == "open"


@pytest.mark.parametrize(
    ("declared", "changes"),
    [
        (DeclaredComparison("a", "c", 1, EARLY), {}),
        (DeclaredComparison("a", "b", 2, EARLY), {}),
        (DeclaredComparison("a", "b", 1, EARLY), {"simulated": True}),
        (DeclaredComparison("a", "b", 1, EARLY), {"p": None}),
    ],
)
def test_without_a_tested_comparison_of_both_models_there_is_no_row(
    declared: DeclaredComparison, changes: dict[str, Any]
) -> None:
    assert declared.row_of(rows(**{"p": 0.01, **changes})) is None


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
    late = Declaration(answered)
    row = found(DeclaredComparison("a", "b", 1, late))
    assert (row["decision"], row["family_size"]) == ("open", 300)
    assert "not claimed (p = 1 after Holm over 300" in sentence(row)
    assert late.when == words
