"""The declared comparison: its own 5 %, in its own direction (protocol 16.12)."""

import math
from typing import Any

import pytest

from cardiolens.score.claims.preregistered import Declaration, DeclaredComparison, declared_comparison

EARLY = Declaration()
A, B = "headline:a", "headline:b"


def rows(p: float, low: float = 1.0, high: float = 9.0, bounds: tuple[float, float] | None = None) -> Any:
    """Model a is 5 points better than b; Holm over the family of models would not carry it."""
    place = {"arm_id": A, "versus_arm_id": B, "scope": "tier:1", "n_patients": 60, "n_items": 600}
    place |= {"method": "", "low": math.nan, "high": math.nan}
    made = [
        place | {"metric": "primary", "value": 5.0, "low": low, "high": high},
        place | {"metric": "primary.swap_p", "value": p},
        place | {"metric": "primary.holm_p", "value": 1.0, "method": "Holm over 300 comparisons of models"},
    ]
    if bounds:
        made.append(place | {"metric": "primary.bounds", "low": bounds[0], "high": bounds[1], "value": 5.0})
    return made


def said(found: Any) -> tuple[str | None, str]:
    (finding,) = found.findings
    return finding.side, finding.sentence


def test_it_is_tested_alone_at_five_percent() -> None:
    side, sentence = said(declared_comparison(rows(0.04), DeclaredComparison("a", "b", 1, EARLY)))
    assert side == "above"
    assert "p = 0.04, declared before the run and tested alone" in sentence
    assert said(declared_comparison(rows(0.06), DeclaredComparison("a", "b", 1, EARLY)))[0] is None


def test_it_has_the_declared_direction() -> None:
    side, sentence = said(declared_comparison(rows(0.01), DeclaredComparison("b", "a", 1, EARLY)))
    assert side == "below"
    assert sentence.startswith("Model b instead of a lowers the headline score on tier 1: difference −5.0")
    assert "−9.0 to −1.0" in sentence


def test_items_that_fell_out_can_take_it_back() -> None:
    for direction in (DeclaredComparison("a", "b", 1, EARLY), DeclaredComparison("b", "a", 1, EARLY)):
        found = declared_comparison(rows(0.01, bounds=(-1.0, 11.0)), direction)
        assert said(found)[0] is None


@pytest.mark.parametrize(
    "declared", [DeclaredComparison("a", "c", 1, EARLY), DeclaredComparison("a", "b", 2, EARLY)]
)
def test_without_both_headlines_nothing_is_said(declared: DeclaredComparison) -> None:
    side, sentence = said(declared_comparison(rows(0.01), declared))
    assert side is None
    assert "no headline of both" in sentence


def test_a_simulated_reader_is_no_model() -> None:
    assert said(declared_comparison(rows(0.01), DeclaredComparison("a", "b", 1, EARLY), {"b"}))[0] is None


@pytest.mark.parametrize(
    ("answered", "words"),
    [
        (480, "declared when 480 answers were there already"),
        (1, "declared when 1 answer was there already"),
        (None, "declared when it is not known how many answers were there already"),
    ],
)
def test_declared_after_looking_it_is_one_of_its_family(answered: int | None, words: str) -> None:
    """Alone p = 0.01 would carry it, Holm's 1.0 does not (17.4)."""
    late = DeclaredComparison("a", "b", 1, Declaration(answered))
    side, sentence = said(declared_comparison(rows(0.01), late))
    assert side is None
    assert f"p = 1 after Holm over 300, {words}" in sentence
    assert "alone" not in sentence
    assert "before the run" not in sentence
