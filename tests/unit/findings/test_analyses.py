"""Analyses: tables, and sentences no stronger than their intervals."""

import math
from typing import Any

import numpy as np
import pytest

from cardiolens.findings import sentences
from cardiolens.findings.analyses import analyse
from cardiolens.stats.bootstrap import percentile
from cardiolens.stats.factors import ArmFactors, families
from cardiolens.stats.headlines import headline_rows, headlines
from cardiolens.stats.statistic import Basis, Statistic


def arm(name: str, **changes: str) -> ArmFactors:
    given = {"model": "m", "selector": "clinical", "budget": "16", "prompt": "standard", "control": "none"}
    return ArmFactors(name, **(given | changes))


def arms_of(**changes: dict[str, str]) -> list[ArmFactors]:
    return [arm(name, **change) for name, change in changes.items()]


def row(metric: str, scope: str, value: float, low: float, high: float, **changes: Any) -> dict[str, Any]:
    found = {"metric": metric, "scope": scope, "value": value, "low": low, "high": high}
    return (
        found
        | {"arm_id": "a", "versus_arm_id": None, "n_patients": 670, "n_items": 19500, "method": "m"}
        | changes
    )


def test_families_hold_pairs_one_factor_apart() -> None:
    one_apart = {"c": {"prompt": "reasoning"}, "d": {"control": "blind"}, "e": {"budget": "8"}}
    random = {"b": {"selector": "random@1"}, "f": {"selector": "random@1", "prompt": "reasoning"}}
    assert families(arms_of(a={}, **one_apart, **random)) == {
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
    found = sentences.equivalence("X", "Y", "tier 1", given)
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
    found = sentences.change("It", "x", row("primary", "tier:1", (low + high) / 2, low, high))
    assert found.verdict == verdict
    assert found.sentence.startswith(begins)
    assert ("80 % power" in found.sentence) == (verdict == "cannot tell")


def test_with_few_patients_nothing_is_claimed() -> None:
    for n, verdict in ((19, "cannot tell"), (20, "supported")):
        found = sentences.change("It", "x", row("primary", "tier:1", 5.0, 4.0, 6.0, n_patients=n))
        assert found.verdict == verdict


def test_without_an_interval_nothing_can_be_told() -> None:
    bare = row("primary", "tier:1", 5.0, math.nan, math.nan)
    for found in (
        sentences.change("It", "x", bare),
        sentences.equivalence("a", "b", "tier 1", bare),
        sentences.threshold("it is so", bare, 1),
        sentences.tested("it is so", math.nan, "one model"),
    ):
        assert found.verdict == "cannot tell"


def test_guessing_is_not_better_than_guessing() -> None:
    found = row("auroc", "subtask:C10", 50.0, 50.0, 50.0)
    assert sentences.threshold("it collapses", found, 50).verdict == "supported"
    assert sentences.threshold("it beats a coin", found, 50, beyond=True).verdict == "not supported"
    assert sentences.threshold("it beats a coin", found, 49.9, beyond=True).verdict == "supported"


def test_every_analysis_has_a_table_and_its_sentences() -> None:
    arms = [arm("a"), arm("b", selector="random@1"), arm("c", prompt="reasoning"), arm("d", control="blind")]
    rows = [
        row("primary", "tier:1", 60, 55, 65),
        row("primary", "tier:1", 50, 45, 55, arm_id="b"),
        row("primary", "tier:1", 55, 50, 60, arm_id="headline:m"),
        row("collapse_index", "subtask:D01", 50, 40, 60),
        row("modal_share", "subtask:D01", 70, 60, 80),
        row("modal_excess", "subtask:D01", 5, 0, 10),
        row("primary.equivalence", "tier:1", 10, 9, 11, arm_id="b", versus_arm_id="a"),
        row("abnormal_call", "tier:1", -4, -6, -2, arm_id="c", versus_arm_id="a"),
        row("primary", "tier:1", 1, -2, 4, arm_id="a", versus_arm_id="d"),
    ]
    found = {analysis.name: analysis for analysis in analyse(rows, arms)}
    assert list(found) == ["landscape", "collapse", "slice protocols", "prompting", "controls"]
    assert found["collapse"].rows == [
        {
            "arm_id": "a",
            "scope": "subtask:D01",
            "collapse_index": 50,
            "modal_share": 70,
            "modal_excess": 5,
            "collapsed": True,
        }
    ]
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


def test_a_difference_that_holm_does_not_leave_is_not_claimed() -> None:
    arms = [arm("a"), arm("b", budget="8")]
    rows = [
        row("primary", "tier:1", 3, 0.5, 5.5, versus_arm_id="b"),
        row("primary.holm_p", "tier:1", 0.08, math.nan, math.nan, versus_arm_id="b"),
    ]
    (found,) = analyse(rows, arms)
    (said,) = found.findings
    assert said.verdict == "cannot tell"
    assert "CI 0.5 to 5.5, Holm-adjusted p = 0.08, 670 patients" in said.sentence


def test_the_largest_change_between_protocols_is_named_with_its_interval() -> None:
    arms = [arm("a"), arm("b", selector="random@1"), arm("c", selector="random@2")]
    rows = [
        row("primary", "tier:1", -3, -5, -1, versus_arm_id="b"),
        row("primary", "tier:1", 1, -1, 3, versus_arm_id="c"),
        row("primary", "tier:1", 9, 8, 10, arm_id="b", versus_arm_id="c"),  # one protocol, two seeds
    ]
    (found,) = analyse(rows, arms)
    assert len(found.rows) == 3
    (said,) = found.findings
    assert said.sentence == (
        "The largest absolute change of 2 between selection protocols is clinical and random@1 on tier 1 "
        "(m, K = 16, standard prompt): difference −3.0, 95 % CI −5.0 to −1.0 (not adjusted for the choice), "
        "670 patients, 19500 items."
    )


def test_tiers_are_compared_over_models() -> None:
    rows = []
    for number in range(8):
        for scope, value in (("tier:1", 60.0 + number), ("tier:3", 40.0 + number / 2)):
            rows.append(row("primary", scope, value, 0, 0, arm_id=f"headline:m{number}"))
    (landscape,) = analyse(rows, [])
    assert landscape.findings[0].verdict == "supported"
    said = [finding.sentence for finding in landscape.findings]
    assert said[0].startswith(
        "Scores of models are lower on tier 3 than on tier 1: median change −21.8 over 8"
    )
    assert said[1] == "Tiers 1 and 3 rank models alike: Kendall's tau 1.00 over 8 models, p = 4.96e-05."


def test_a_headline_averages_seeds_before_protocols() -> None:
    random = {"b": {"selector": "random@1"}, "c": {"selector": "random@2"}}
    models = headlines(arms_of(a={}, d={"budget": "8"}, e={"prompt": "reasoning"}, **random))
    assert models == {"m": {"clinical": ["a"], "random": ["b", "c"]}}
    basis = Basis(10, 5, 1, 0)
    statistics = {
        name: {("primary", "tier:1"): Statistic(np.array(values), basis)}
        for name, values in {"a": [0.8, 0.6, 1.0], "b": [0.5, 0.1, 0.5], "c": [0.3, 0.3, 0.5]}.items()
    }
    (found,) = headline_rows(statistics, models, "by resampling")
    assert (found["arm_id"], found["value"]) == ("headline:m", pytest.approx(60))
    wanted = percentile(np.array([60.0, 40, 75]), patients=5)
    assert [found["low"], found["high"]] == pytest.approx([wanted.low, wanted.high])
    assert (found["n_items"], found["n_patients"], found["n_parse_error"]) == (30, 5, 3)
    assert found["method"] == ("mean over selection protocols clinical random (3 arms); by resampling")
