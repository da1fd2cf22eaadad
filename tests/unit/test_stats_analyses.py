"""Analyses: tables, and sentences no stronger than their intervals."""

import math
from typing import Any

import pytest

from cardiolens.stats import findings
from cardiolens.stats.analyses import analyse
from cardiolens.stats.factors import ArmFactors, families
from cardiolens.tables import SCORES, from_rows


def arm(name: str, **changes: str) -> ArmFactors:
    given = {"model": "m", "selector": "clinical", "budget": "16", "prompt": "standard", "control": "none"}
    return ArmFactors(name, **(given | changes))


def row(metric: str, scope: str, value: float, low: float, high: float, **changes: Any) -> dict[str, Any]:
    found = {"metric": metric, "scope": scope, "value": value, "low": low, "high": high}
    return found | {"arm_id": "a", "n_patients": 670, "n_items": 19500, "method": "m"} | changes


def test_families_hold_pairs_one_factor_apart() -> None:
    arms = [
        arm("a"),
        arm("b", selector="random@1"),
        arm("c", prompt="reasoning"),
        arm("d", control="blind"),
        arm("e", budget="8"),
        arm("f", selector="random@1", prompt="reasoning"),
    ]
    assert families(arms) == {
        "selector | m, 16, standard, none": [("b", "a")],
        "prompt | m, clinical, 16, none": [("c", "a")],
        "control | m, clinical, 16, standard": [("a", "d")],
        "budget | m, clinical, standard, none": [("a", "e")],
        "prompt | m, random@1, 16, none": [("f", "b")],
        "selector | m, 16, reasoning, none": [("f", "c")],
    }


def test_budgets_are_ordered_as_numbers() -> None:
    assert list(families([arm("x", budget="8"), arm("y", budget="16")]).values()) == [[("y", "x")]]


@pytest.mark.parametrize(
    ("low", "high", "verdict", "said"),
    [
        (-0.6, 1.3, "supported", "X and Y are equivalent within 2 points on tier 1"),
        (-3.0, 3.0, "cannot tell", "Whether X and Y are equivalent within 2 points on tier 1 cannot be told"),
        (2.5, 3.5, "not supported", "X and Y differ by more than 2 points on tier 1"),
    ],
)
def test_equivalence_in_words(low: float, high: float, verdict: str, said: str) -> None:
    given = row("primary.equivalence", "tier:1", 0.4, low, high)
    found = findings.equivalence("X", "Y", "tier 1", given)
    numbers = f"difference 0.4, 90 % CI {low} to {high}, 670 patients, 19500 items.".replace("-", "−")
    assert (found.verdict, found.sentence) == (verdict, f"{said}: {numbers}")


@pytest.mark.parametrize(
    ("low", "high", "verdict", "begins"),
    [
        (0.5, 3.0, "supported", "It raises x"),
        (-3.0, -0.5, "not supported", "It lowers x"),
        (-1.0, 1.0, "cannot tell", "It cannot be shown to change x"),
    ],
)
def test_a_change_is_claimed_only_where_the_interval_excludes_zero(
    low: float, high: float, verdict: str, begins: str
) -> None:
    found = findings.change("It", "x", row("primary", "tier:1", (low + high) / 2, low, high))
    assert found.verdict == verdict
    assert found.sentence.startswith(begins)
    assert ("80 % power" in found.sentence) == (verdict == "cannot tell")


def test_without_an_interval_nothing_can_be_told() -> None:
    bare = row("primary", "tier:1", 5.0, math.nan, math.nan)
    for found in (
        findings.change("It", "x", bare),
        findings.equivalence("a", "b", "tier 1", bare),
        findings.threshold("it is so", bare, 1),
        findings.tested("it is so", math.nan, "one model"),
    ):
        assert found.verdict == "cannot tell"


def test_every_analysis_has_a_table_and_its_sentences() -> None:
    arms = [arm("a"), arm("b", selector="random@1"), arm("c", prompt="reasoning"), arm("d", control="blind")]
    rows = [
        row("primary", "tier:1", 60, 55, 65),
        row("primary", "tier:1", 50, 45, 55, arm_id="b"),
        row("collapse_index", "subtask:D01", 50, 40, 60),
        row("primary.equivalence", "tier:1", 10, 9, 11, arm_id="b", versus_arm_id="a"),
        row("abnormal_call", "tier:1", -4, -6, -2, arm_id="c", versus_arm_id="a"),
        row("primary", "tier:1", 1, -2, 4, arm_id="a", versus_arm_id="d"),
    ]
    found = {analysis.name: analysis for analysis in analyse(from_rows(rows, SCORES), arms)}
    assert list(found) == ["landscape", "collapse", "slice protocols", "prompting", "controls"]
    value = found["landscape"].table.filter(found["landscape"].table["value"].is_valid()).to_pylist()[0]
    assert (value["model"], value["tier"], value["value"]) == ("m", "tier:1", 55)
    verdicts = {name: [entry.verdict for entry in analysis.findings] for name, analysis in found.items()}
    assert verdicts == {
        "landscape": [],
        "collapse": ["supported"],
        "slice protocols": ["not supported"],
        "prompting": ["not supported"],
        "controls": ["cannot tell"],
    }
    said = found["prompting"].findings[0].sentence
    assert said == (
        "Prompt reasoning instead of standard lowers the rate of abnormal calls on tier 1 "
        "(m, clinical selection, K = 16): difference −4.0, 95 % CI −6.0 to −2.0, 670 patients, 19500 items."
    )


def test_tiers_are_compared_over_models() -> None:
    arms = [arm(f"a{number}", model=f"m{number}") for number in range(8)]
    rows = []
    for number in range(8):
        for scope, value in (("tier:1", 60.0 + number), ("tier:3", 40.0 + number / 2)):
            rows.append(row("primary", scope, value, 0, 0, arm_id=f"a{number}"))
    (landscape,) = analyse(from_rows(rows, SCORES), arms)
    assert landscape.findings[0].verdict == "supported"
    said = [finding.sentence for finding in landscape.findings]
    assert said[0].startswith(
        "Scores of models are lower on tier 3 than on tier 1: median change −21.8 over 8"
    )
    assert said[1] == "Tiers 1 and 3 rank models alike: Kendall's tau 1.00 over 8 models, p = 4.96e-05."
