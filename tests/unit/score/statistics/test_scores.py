"""Scores of verdicts: scopes, means, intervals, and what must not change them."""

import os
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made_verdicts import cohort, table, verdict
from scipy import stats

from cardiolens.score.statistics import pairs
from cardiolens.score.statistics import scores as of_scores
from cardiolens.score.statistics.bootstrap import effective_patients, percentile, resampling_weights
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.score.statistics.verdict_rows import Verdicts, judged_shares, percent_read, status_counts
from cardiolens.show.page.columns import caveats
from cardiolens.storage.schemas import SCORES, VERDICTS


def scored(rows: pa.Table | Verdicts, min_n: int, resamples: int, seed: int) -> pa.Table:
    """The table of scores."""
    return score(rows, [], Settings(min_n, resamples, seed)).scores


def scores_of(
    rows: list[dict[str, Any]], min_n: int = 1, resamples: int = 50
) -> dict[tuple[str, str], dict[str, Any]]:
    scores = scored(table(rows), min_n, resamples, seed=1)
    assert scores.schema.equals(SCORES)
    return {(row["metric"], row["scope"]): row for row in scores.to_pylist()}


def same(first: pa.Table, second: pa.Table) -> bool:
    """Equal to the last digit, NaN included."""
    return repr(first.to_pylist()) == repr(second.to_pylist())


def test_primary_values_means_and_tiers() -> None:
    rows = [
        verdict("p1", "C10", "A", "A"),
        verdict("p2", "C10", "B", "A"),
        verdict("p1", "L01", "B", "B"),
        verdict("p1", "L02", "AB", "ABCDE"),
        verdict("p2", "L02", "AB", "BCD"),
    ]
    found = scores_of(rows)
    values = {scope: found["primary", scope]["value"] for metric, scope in found if metric == "primary"}
    assert values == {
        "subtask:C10": 50,
        "subtask:L01": 100,
        "subtask:L02": 50,
        "sequence:cine": 50,
        "sequence:lge": 75,
        "tier:1": pytest.approx(200 / 3),
    }


def test_counts_stand_beside_every_number() -> None:
    rows = [
        verdict("p1", "C10", "A", "A"),
        verdict("p2", "C10", "A", ""),
        verdict("p3", "C10", "A", "", parse_status="truncated"),
        verdict("p4", "C10", "A", "", parse_status="refusal"),
        verdict("p5", "C10", "A", "", status="overflow", parse_status=None, correct=None, counts=None),
    ]
    row = scores_of(rows)["primary", "subtask:C10"]
    counted = [row[name] for name in ("n_items", "n_patients", "n_parse_error", "n_refusal")]
    assert (row["value"], counted) == (25, [4, 4, 2, 1])


def test_small_subtasks_stay_out_of_means_and_are_listed() -> None:
    rows = [verdict(f"p{number}", "L01", "B", "B") for number in range(5)] + [verdict("p1", "C10", "A", "B")]
    found = scores_of(rows, min_n=5)
    assert found["primary", "tier:1"]["value"] == 100
    assert "mean of 1 subtask, without C10 (fewer than 5 items)" in found["primary", "tier:1"]["method"]
    assert np.isnan(found["primary", "sequence:cine"]["value"])
    assert found["primary", "sequence:cine"]["n_items"] == 0
    assert found["primary", "subtask:C10"]["value"] == 0


def test_tier_three_is_the_mean_of_two_macro_f1() -> None:
    rows = [verdict("p1", "D01", "A", "A"), verdict("p2", "D01", "C", "C"), verdict("p3", "D01", "C", "A")]
    alone = scores_of(rows)["primary", "tier:3"]
    assert alone["value"] == pytest.approx(100 * 2 / 3)
    assert alone["method"].startswith("macro_f1 of D01 alone")
    both = scores_of([*rows, verdict("p2", "D02", "B", "A")])
    assert both["primary", "tier:3"]["value"] == pytest.approx(100 / 3)
    assert both["accuracy", "tier:3"]["value"] == pytest.approx(100 / 3)


@pytest.mark.full
def test_processes_change_no_digit(monkeypatch) -> None:
    rows = cohort(15, arms="abcd")
    arms = [ArmFactors(arm, "model", "clinical", "8", arm) for arm in "abcd"]
    settings = Settings(5, 40, 7, swaps=20)
    alone = score(table(rows[:-1]), arms, settings)
    assert "d" in alone[1]["arm_id"].to_pylist()
    for module in (of_scores, pairs):
        monkeypatch.setattr(module, "MANY", 0)
    monkeypatch.setattr(pairs, "_CHUNK", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    for found, expected in zip(score(table(rows[:-1]), arms, settings), alone, strict=True):
        assert same(found, expected)


@pytest.mark.full
def test_order_and_parts_change_no_digit() -> None:
    rows = cohort(25, arms="ab")
    once = scored(table(rows), 5, 200, seed=2026)
    random.Random(0).shuffle(rows)
    parts = [table(rows[start : start + 37]) for start in range(0, len(rows), 37)]
    assert same(scored(pa.concat_tables(parts), 5, 200, seed=2026), once)
    by_arm = Verdicts()
    for part in parts:
        by_arm.add(part)
    assert same(scored(by_arm, 5, 200, seed=2026), once)


def test_the_bootstrap_keeps_patients_whole() -> None:
    """Ten copies of each patient's item carry no more than one: the interval must not shrink."""
    few = [verdict(f"p{number}", "L01", "B", "AB"[number % 2]) for number in range(12)]
    many = [row | {"qa_id": f"{row['qa_id']}:{copy}"} for row in few for copy in range(10)]
    one, ten = (scores_of(rows, resamples=500)["primary", "subtask:L01"] for rows in (few, many))
    assert (one["low"], one["high"]) == (ten["low"], ten["high"])
    assert (one["n_items"], ten["n_items"]) == (12, 120)


def test_an_interval_agrees_with_resampling_written_out() -> None:
    """The same statistic by a loop over resampled lists of verdicts."""
    rows = cohort(15)
    weights = resampling_weights(15, 40, seed=1)
    by_patient = {
        f"p{number:03d}": [row for row in rows if row["patient_id"] == f"p{number:03d}"]
        for number in range(15)
    }
    values = []
    for drawn in weights:
        chosen = [
            row
            for patient, times in zip(sorted(by_patient), drawn, strict=True)
            for row in by_patient[patient] * int(times)
        ]
        means = []
        for subtask in ("C10", "L01"):
            answers = [row["correct"] for row in chosen if row["subtask"] == subtask]
            means.append(sum(answers) / len(answers))
        sets = [(set(row["gold"]), set(row["parsed"])) for row in chosen if row["subtask"] == "L02"]
        right = sum(len(gold & found) for gold, found in sets)
        means.append(2 * right / sum(len(gold) + len(found) for gold, found in sets))
        values.append(100 * sum(means) / 3)
    expected = percentile(np.array(values), patients=15)
    row = scores_of(rows, resamples=40)["primary", "tier:1"]
    assert [row["value"], row["low"], row["high"]] == pytest.approx(
        [expected.value, expected.low, expected.high]
    )


def test_percentiles_reach_as_far_as_a_t_interval_of_so_many_patients() -> None:
    drawn = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    found = percentile(np.concatenate([[0.0], drawn]), patients=12)
    # what makes 1.96 standard errors of n into t standard errors of n - 1
    assert found.high == pytest.approx(np.sqrt(12 / 11) * stats.t.ppf(0.975, 11), abs=2e-3)
    assert found.low == pytest.approx(-found.high)
    plain = percentile(np.concatenate([[0.0], drawn]))
    assert plain.high == pytest.approx(1.96, abs=1e-3)


def test_a_macro_mean_names_its_rarest_class_and_is_wider_for_it() -> None:
    rows = cohort(40)
    for row in rows:
        if row["subtask"] == "D01":
            row["gold"] = ["B"] if row["patient_id"] in ("p000", "p001") else ["A"]
    found = scores_of(rows)["macro_f1", "subtask:D01"]
    assert found["method"].startswith("rarest class 2 items; near the boundary: Clopper-Pearson")


def test_no_verdicts_no_scores() -> None:
    assert scored(VERDICTS.empty_table(), 5, 10, 1).num_rows == 0


def test_small_classes_are_worth_few_patients() -> None:
    assert effective_patients([np.array([40])]) == pytest.approx(40)
    assert effective_patients([np.array([40, 40])]) == pytest.approx(79)
    # a variance of 1/2 with 1 degree of freedom beside one of 1/100 with 99
    by_hand = 1 + 0.51**2 / (0.25 + 1e-4 / 99)
    assert effective_patients([np.array([2, 100])]) == pytest.approx(by_hand)
    # two questions of two classes, each question a half
    assert effective_patients([np.array([5, 5]), np.array([5, 5])]) == pytest.approx(17)
    assert effective_patients([np.array([1])]) == 2


def test_undefined_resamples_stay_out() -> None:
    assert percentile(np.array([1.0, np.nan, 1.0, np.nan])).low == 1
    assert np.isnan(percentile(np.array([np.nan, 1.0])).low)
    assert np.isnan(percentile(np.array([1.0, np.nan])).high)


def ended(number: int, status: str, parse_status: str | None = None) -> dict[str, Any]:
    lost = {} if status == "judged" else {"parsed": None, "counts": None}
    return verdict(f"p{number}", "L01", "A", "A", status=status, parse_status=parse_status) | lost


ROWS = [
    *(ended(number, "judged", "ok") for number in range(97)),
    ended(97, "judged", "refusal"),
    ended(98, "overflow"),
    ended(99, "skipped: no view"),
]


def test_every_way_to_end_is_counted() -> None:
    counted = status_counts(Verdicts.of(table(ROWS)))
    found = {(row["status"], row["parse_status"]): row["n"] for row in counted}
    expected = {
        ("judged", "ok"): 97,
        ("judged", "refusal"): 1,
        ("overflow", None): 1,
        ("skipped: no view", None): 1,
    }
    assert found == expected


def test_a_score_of_less_than_99_percent_of_its_items_says_so() -> None:
    assert judged_shares(Verdicts.of(table(ROWS)))["arm", "sequence:lge"] == 0.98
    rows = scores_of(ROWS)
    for scope in ("subtask:L01", "sequence:lge", "tier:1"):
        assert rows["primary", scope]["percent_judged"] == pytest.approx(98)
        assert caveats(rows["primary", scope]) == ["incomplete, 98.0 % of items judged"]
    assert rows["primary", "tier:1"]["n_items"] == 98
    assert percent_read(rows["primary", "tier:1"]) == 98


def test_a_score_of_99_percent_is_complete() -> None:
    rows = scores_of([*ROWS[:-1], ended(100, "judged", "ok")])
    assert rows["primary", "tier:1"]["percent_judged"] is None
    assert caveats(rows["primary", "tier:1"]) == []


def test_numbers_are_not_among_the_items_of_a_tier() -> None:
    """Before, enough judged numbers made a score complete that lacks a fifth of its items."""
    asked = [ended(number, "judged" if number < 8 else "overflow", "ok") for number in range(10)]
    numbers = [
        verdict(f"p{at}", "P01", "A", "A", qa_id=f"{at}", channel="number", answer_type="number")
        for at in range(1000)
    ]
    shares = judged_shares(Verdicts.of(table(asked + numbers)))
    assert (shares["arm", "tier:1"], shares["arm", "sequence:lge"], shares["arm", "subtask:P01"]) == (
        0.8,
        0.8,
        1,
    )
    assert ("arm", "sequence:perfusion") not in shares
