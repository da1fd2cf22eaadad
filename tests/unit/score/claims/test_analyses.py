"""Analyses: tables, and sentences no stronger than their intervals."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cardiolens.score.claims import sentences
from cardiolens.score.claims.analyses import analyse
from cardiolens.score.claims.evidence_analysis import Evidence
from cardiolens.score.claims.landscape import landscape
from cardiolens.score.statistics.factors import ArmFactors, families
from cardiolens.score.statistics.headlines import headline_means, headlines
from cardiolens.score.statistics.statistic import Basis, Statistic


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


def carried_by(*metrics: str, p: float = 0.01) -> dict[str, dict[str, Any]]:
    """Rows that say what Holm leaves of the p-values of metrics, over a family of three."""
    names = [
        f"{name}_holm_p" if name in ("primary.equivalence", "primary.beyond") else f"{name}.holm_p"
        for name in metrics
    ]
    return {name: row(name, "tier:1", p, math.nan, math.nan, method="Holm over 3 of it") for name in names}


OVER_9 = "Holm over 9 comparisons"
CARRIED = Evidence(0.01, 3)


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
    ("low", "high", "side", "said"),
    [
        (-0.6, 1.3, "within", "X and Y are equivalent within 2 points on tier 1"),
        (-3.0, 3.0, None, "Whether X and Y are equivalent within 2 points on tier 1 cannot be told"),
        (2.5, 3.5, "beyond", "X and Y differ by more than 2 points on tier 1"),
    ],
)
def test_equivalence_in_words(low: float, high: float, side: str | None, said: str) -> None:
    given = row("primary.equivalence", "tier:1", 0.4, low, high, n_same_request=3900)
    found = sentences.equivalence(
        "X", "Y", "tier 1", given, carried_by("primary.beyond", "primary.equivalence")
    )
    tested = "p = 0.01 after Holm over 3" + (" for more than 2 points" if side == "beyond" else "")
    numbers = f"difference 0.4, 90 % CI {low} to {high}, {tested}, 670 patients, "
    numbers = f"{numbers}19500 items, 20 % of them asked by identical requests.".replace("-", "−")
    assert (found.side, found.sentence) == (side, f"{said}: {numbers}")


@pytest.mark.parametrize(
    ("low", "high", "side", "begins"),
    [
        (0.5, 3.0, "above", "It raises x"),
        (-3.0, -0.5, "below", "It lowers x"),
        (-1.0, 1.0, None, "It cannot be shown to change x"),
    ],
)
def test_a_change_is_claimed_only_where_the_interval_excludes_zero(
    low: float, high: float, side: str | None, begins: str
) -> None:
    found = sentences.change("It", "x", row("primary", "tier:1", (low + high) / 2, low, high), CARRIED)
    assert found.side == side
    assert found.sentence.startswith(begins)
    assert ("80 % power" in found.sentence) == (found.verdict == "cannot tell") == (side is None)


def test_with_few_patients_nothing_is_claimed() -> None:
    for n, verdict in ((19, "cannot tell"), (20, "supported")):
        found = sentences.change("It", "x", row("primary", "tier:1", 5.0, 4.0, 6.0, n_patients=n), CARRIED)
        assert found.verdict == verdict


def test_without_an_interval_nothing_can_be_told() -> None:
    bare = row("primary", "tier:1", 5.0, math.nan, math.nan)
    for found in (
        sentences.change("It", "x", bare, CARRIED),
        sentences.equivalence("a", "b", "tier 1", bare),
        sentences.threshold("it is so", bare, 1, CARRIED),
        sentences.hypothesis("it is so", "above", math.nan, "one model"),
    ):
        assert found.verdict == "cannot tell"


def test_guessing_is_not_better_than_guessing() -> None:
    found = row("auroc", "subtask:C10", 50.0, 50.0, 50.0)
    none = Evidence()
    assert sentences.threshold("it collapses", found, 50, none).verdict == "cannot tell", "no p, no claim"
    assert sentences.threshold("it beats a coin", found, 50, none, beyond=True).verdict == "cannot tell"
    assert sentences.threshold("it beats a coin", found, 49.9, CARRIED, beyond=True).verdict == "supported"
    assert sentences.threshold("it beats a coin", found, 49.9, none, beyond=True).verdict == "cannot tell"


def test_every_analysis_has_a_table_and_its_sentences() -> None:
    arms = [arm("a"), arm("b", selector="random@1"), arm("c", prompt="reasoning"), arm("d", control="blind")]
    rows = [
        row("primary", "tier:1", 60, 55, 65),
        row("primary", "tier:1", 50, 45, 55, arm_id="b"),
        row("primary", "tier:1", 55, 50, 60, arm_id="headline:m"),
        row("collapse_index", "subtask:D01", 50, 40, 60),
        row("modal_share", "subtask:D01", 70, 60, 80),
        row("modal_excess", "subtask:D01", 15, 10, 20),
        row("primary.equivalence", "tier:1", 10, 9, 11, arm_id="b", versus_arm_id="a"),
        row("primary.beyond_holm_p", "tier:1", 0.01, math.nan, math.nan, arm_id="b", versus_arm_id="a"),
        row("criterion", "tier:1", -4, -6, -2, arm_id="c", versus_arm_id="a"),
        row("criterion.holm_p", "tier:1", 0.02, 0, 0, arm_id="c", versus_arm_id="a", method=OVER_9),
        row("recall", "tier:1", -4, -6, -2, arm_id="c", versus_arm_id="a"),
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
            "modal_excess": 15,
            "collapsed": True,
            "method": "m",
        }
    ]
    sides = {name: [entry.side for entry in analysis.findings] for name, analysis in found.items()}
    assert sides == {
        "landscape": [],
        "collapse": ["above"],
        "slice protocols": ["beyond"],
        "prompting": ["below", None],
        "controls": [None],
    }
    said = found["prompting"].findings[0].sentence
    assert said == (
        "Prompt reasoning instead of standard lowers the criterion for calling an abnormality (higher: more "
        "conservative) on tier 1 "
        "(m, clinical selection, K = 16): difference −4.00, 95 % CI −6.00 to −2.00, p = 0.02 after "
        "Holm over 9, 670 patients, 19500 items."
    )


def test_a_difference_that_holm_does_not_leave_is_not_claimed() -> None:
    arms = [arm("a"), arm("b", budget="8")]
    rows = [
        row("primary", "tier:1", 3, 0.5, 5.5, versus_arm_id="b"),
        row("primary.holm_p", "tier:1", 0.08, math.nan, math.nan, versus_arm_id="b", method=OVER_9),
    ]
    (found,) = analyse(rows, arms)
    (said,) = found.findings
    assert said.verdict == "cannot tell"
    assert "CI 0.5 to 5.5, p = 0.08 after Holm over 9, 670 patients" in said.sentence
    assert "shows a difference of 4.6 points with 80 % power among 9 comparisons" in said.sentence


def test_the_largest_change_between_protocols_is_named_with_its_interval() -> None:
    arms = [arm("a"), arm("b", selector="random@1"), arm("c", selector="random@2")]
    rows = [
        row("primary", "tier:1", -3, -5, -1, versus_arm_id="b"),
        row("primary", "tier:1", 1, -1, 3, versus_arm_id="c"),
        row("primary", "tier:1", 9, 8, 10, arm_id="b", versus_arm_id="c"),  # one protocol, two seeds
        row("primary.holm_p", "tier:1", 0.04, 0, 0, versus_arm_id="b", method=OVER_9),
    ]
    (found,) = analyse(rows, arms)
    assert len(found.rows) == 4
    (said,) = found.findings
    assert said.sentence == (
        "The largest absolute change of 2 between selection protocols is clinical and random@1 on tier 1 "
        "(m, K = 16, standard prompt): difference −3.0, 95 % CI −5.0 to −1.0, p = 0.04 after Holm over 9, "
        "670 patients, 19500 items."
    )
    rows[-1] |= {"value": 0.06}
    assert analyse(rows, arms)[0].findings[0].verdict == "cannot tell"


def tier_rows(corrected: Sequence[float], exact: Sequence[float]) -> list[dict[str, Any]]:
    """Headlines of eight models that are so accurate on tiers 1 and 3, and their mean changes."""
    rows = []
    sides = {"arm_id": "models:tier:3", "versus_arm_id": "models:tier:1", "method": "mean over 8 models, x"}
    for metric, (before, after) in {"corrected_accuracy": corrected, "exact_answers": exact}.items():
        change = after - before
        rows.append(row(metric, "tier:3", change, change - 1, change + 1, **sides))
        rows.append(row(f"{metric}.change_p", "tier:3", 0.001, 0, 0, **sides))
    for number in range(8):
        for metric, values in (
            ("corrected_accuracy", corrected),
            ("exact_answers", exact),
            ("primary", exact),
        ):
            for tier, value in zip((1, 3), values, strict=True):
                jitter = number * tier / 40
                rows.append(row(metric, f"tier:{tier}", value + jitter, 0, 0, arm_id=f"headline:m{number}"))
    return rows


@pytest.mark.parametrize(
    ("corrected", "exact", "verdict", "than"),
    [
        ((60, 40), (65, 50), "supported", "lower"),
        ((60, 40), (50, 49), "supported", "lower"),
        ((60, 40), (50, 55), "cannot tell", "lower"),  # only the guessing is easier
        ((50, 42), (50, 46), "supported", "lower"),
    ],
)
def test_tiers_are_compared_on_corrected_accuracy(
    corrected: Sequence[float], exact: Sequence[float], verdict: str, than: str
) -> None:
    said = landscape(tier_rows(corrected, exact)).findings[0]
    begins = "Accuracy" if verdict == "supported" else "It cannot be told whether accuracy"
    assert said.sentence.startswith(
        f"{begins} of models corrected for guessing is {than} on tier 3 than on tier 1: mean over 8 models "
    )
    assert said.verdict == verdict


def test_primary_scores_alone_show_no_decline() -> None:
    rows = [found for found in tier_rows((60, 40), (65, 50)) if found["metric"] == "primary"]
    assert [said.sentence[:5] for said in landscape(rows).findings] == ["Tiers"]


def test_collapse_is_claimed_where_the_interval_of_the_excess_lies_above_five_points() -> None:
    for low, verdict in ((6, "supported"), (4, "cannot tell")):
        rows = [
            row("collapse_index", "subtask:D01", 50, 40, 60),
            row("modal_share", "subtask:D01", 90, 85, 95),
            row("modal_excess", "subtask:D01", 15, low, 20),
        ]
        (found,) = analyse(rows, [arm("a")])
        assert found.findings[0].verdict == verdict
        assert found.rows[0]["collapsed"] is (verdict == "supported")


def test_simulated_readers_enter_no_sentence() -> None:
    rows = tier_rows((60, 40), (65, 50))
    rows.append(row("primary", "tier:1", 5, 4, 6, arm_id="headline:m0", versus_arm_id="headline:m1"))
    found = landscape(rows, {f"m{number}" for number in range(8)})
    assert (len(found.rows), found.findings) == (len(rows), ())
    (difference,) = [one for one in landscape(rows).findings if "Model m0" in one.sentence]
    assert difference.verdict == "cannot tell"  # in no family: described


def test_equivalence_must_hold_where_requests_differ() -> None:
    given = row("primary.equivalence", "tier:1", 0.1, -0.5, 0.5, n_same_request=19000)
    differing = row("primary.equivalence_differing", "tier:1", 4.0, 1.0, 7.0, n_items=500)
    beside = carried_by("primary.equivalence")
    assert sentences.equivalence("X", "Y", "t", given, beside).verdict == "supported"
    found = sentences.equivalence("X", "Y", "t", given, beside | {differing["metric"]: differing})
    assert found.verdict == "cannot tell"
    assert "rests on identical requests, without them difference 4.0, 90 % CI 1.0 to 7.0" in found.sentence
    every = given | {"n_same_request": 19500}
    assert sentences.equivalence("X", "Y", "t", every, beside).verdict == "cannot tell"


def test_few_patients_have_neither_an_interval_nor_a_p() -> None:
    metrics = ("primary", "primary.equivalence")
    given = {metric: row(metric, "tier:1", 9.0, 8.0, 10.0, n_patients=4) for metric in metrics}
    rows = given | carried_by(*metrics, p=0.0001)
    for found in (
        sentences.equivalence("X", "Y", "t", given["primary.equivalence"], rows),
        sentences.change("It", "x", given["primary"], Evidence.of(rows, "primary")),
    ):
        assert found.verdict == "cannot tell"
        assert "difference 9.0, no interval to rely on, not tested, 4 patients, " in found.sentence


def test_two_that_differ_are_said_to_where_by_how_much_cannot_be_told() -> None:
    given = row("primary.equivalence", "tier:1", -29.6, -44.2, -13.9)
    difference = {"primary": row("primary", "tier:1", -29.6, -46.4, -10.5)}
    beyond = {"primary.beyond_holm_p": row("x", "tier:1", 0.08, 0, 0, method="Holm over 6 of it")}
    found = sentences.equivalence("X", "Y", "t", given, difference | beyond | carried_by("primary"))
    assert (found.side, found.verdict) == ("below", "supported")
    assert found.sentence.startswith(
        "X and Y differ on t (p = 0.01 after Holm over 3), and whether by more than 2 points cannot be told: "
        "difference −29.6, 90 % CI −44.2 to −13.9, p = 0.08 after Holm over 6 for more than 2 points, "
    )
    explored = {"primary.fdr_p": row("x", "tier:1", 0.002, 0, 0, method="false discovery rate over 24 of it")}
    found = sentences.equivalence("X", "Y", "t", given, difference | explored)
    assert found.side is None
    assert found.sentence.startswith(
        "X and Y may differ on t: difference −29.6, 90 % CI −44.2 to −13.9, exploratory, "
        "false discovery rate = 0.002 over 24, "
    )
    largest = sentences.largest("change", difference["primary"], Evidence.of(explored, "primary"))
    assert largest.sentence.endswith("; explored, not claimed.")


def test_one_patient_is_no_plural() -> None:
    found = sentences.change("It", "x", row("primary", "tier:1", 1, 0, 2, n_patients=1, n_items=1), CARRIED)
    assert ", 1 patient, 1 item." in found.sentence


def test_a_value_that_is_not_defined_is_said_to_be_so() -> None:
    given = row("primary", "tier:1", math.nan, math.nan, math.nan)
    found = sentences.equivalence("X", "Y", "t", given, {})
    assert "difference undefined, no interval to rely on, not tested" in found.sentence


def test_nothing_is_claimed_that_items_which_fell_out_could_turn() -> None:
    given = row("primary", "tier:1", 6.3, 5.0, 7.6)
    bounds = row("primary.bounds", "tier:1", 6.3, -1.0, 9.0, n_items=40, method="incomplete, 40 of 200")
    found = sentences.change("It", "x", given, Evidence(0.01, 3, bounds))
    assert found.verdict == "cannot tell"
    assert "; incomplete, 40 items fell out, with them between −1.0 and 9.0." in found.sentence
    firm = Evidence(0.01, 3, bounds | {"low": 0.5})
    assert sentences.change("It", "x", given, firm).verdict == "supported"
    assert sentences.largest("x", given, Evidence(0.01, 3, bounds)).verdict == "cannot tell"


def test_a_blind_reader_of_one_answer_has_no_shortcut() -> None:
    arms = [arm("a"), arm("d", control="blind"), arm("e", control="captions")]
    rows = [
        row("text_shortcut", "tier:1", -1, -2, -0.5, arm_id="d", method="one answer a subtask; m"),
        row("primary", "tier:1", 5, 3, 7, arm_id="e", versus_arm_id="d"),
        row("primary.holm_p", "tier:1", 0.01, 0, 0, arm_id="e", versus_arm_id="d", method=OVER_9),
    ]
    captions, text = analyse(rows, arms)[0].findings
    assert (captions.side, text.side) == ("above", "below")
    assert captions.verdict == text.verdict == "supported"
    assert captions.sentence.startswith("Reading the captions of frames instead of none raises the score")
    assert text.sentence.endswith("gives one answer a subtask on tier 1: the text alone is no shortcut.")


def test_a_headline_averages_seeds_before_protocols() -> None:
    random = {"b": {"selector": "random@1"}, "c": {"selector": "random@2"}}
    models = headlines(arms_of(a={}, d={"budget": "8"}, e={"prompt": "reasoning"}, **random))
    assert models == {"m": {"clinical": ["a"], "random": ["b", "c"]}}
    basis = Basis(1000, 500, 1, 0)
    statistics = {
        name: {("primary", "tier:1"): Statistic(np.array(values), basis)}
        for name, values in {"a": [0.8, 0.6, 1.0], "b": [0.5, 0.1, 0.5], "c": [0.3, 0.3, 0.5]}.items()
    }
    (found,) = headline_means(statistics, models, "by resampling")
    assert (found["arm_id"], found["value"]) == ("headline:m", pytest.approx(60))
    mean = Statistic(np.array([0.6, 0.4, 0.75]), replace(basis, n_items=3000, n_arms=3))
    wanted = mean.interval(100, kind="share")
    assert [found["low"], found["high"]] == pytest.approx([wanted.low, wanted.high])
    assert (found["n_items"], found["n_patients"], found["n_parse_error"]) == (3000, 500, 3)
    assert found["method"] == (
        f"mean over selection protocols clinical random (3 arms); {wanted.how}; by resampling"
    )


def test_a_simulated_reader_beside_a_model_changes_no_sentence_on_it_and_stands_after_it() -> None:
    """Arms of the reader sort before those of the model, and their tests must not enlarge its family."""
    own = [row("auroc", f"subtask:{name}", 80, 60, 97, arm_id="z") for name in ("C11", "L01")]
    other = [row("auroc", f"subtask:{name}", 99, 98, 100, arm_id="a") for name in ("C11", "L01", "P01")]
    model, reader = arm("z"), replace(arm("a", model="oracle"), simulated=True)
    (alone,) = (one for one in analyse(own, [model]) if one.name == "confidence")
    (both,) = (one for one in analyse([*other, *own], [reader, model]) if one.name == "confidence")
    assert both.findings[:2] == alone.findings
    assert [finding.simulated for finding in both.findings] == [False, False, True, True, True]
    (readers,) = (one for one in analyse(other, [reader]) if one.name == "confidence")
    assert not any(finding.simulated for finding in readers.findings), "alone they are what the run is about"
