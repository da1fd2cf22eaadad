"""What claims rest on: swaps of patients, common items, corrected accuracy (protocol 16.3, 16.4, 16.6)."""

import itertools
import random
from typing import Any

import numpy as np
import pytest
from test_scores import cohort, table, verdict

from cardiolens.score.claims.landscape import landscape
from cardiolens.score.statistics.aggregates import arm_statistics
from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.cells import Cells, claimed_statistics
from cardiolens.score.statistics.corrected import chance_accuracy
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.headlines import headlines
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.paired import wilcoxon
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.swap_test import coins, split, stack, swap_p


def patients_of(number: int) -> list[str]:
    return [f"p{at:03d}" for at in range(number)]


def value(rows: list[dict[str, Any]], arm: str, number: int) -> dict[tuple[str, str], float]:
    """Every statistic of an arm by the code that makes intervals."""
    answers = Answers.of(table(rows), patients_of(number)).of_arm(arm)
    found = arm_statistics(answers, np.ones((1, number)), 1, 1, {})
    return {key: float(statistic.values[0]) for key, statistic in found.items()}


def test_swaps_test_the_statistic_of_the_interval() -> None:
    """All 64 swaps of six patients, each written out as lists of verdicts, against sums of cells."""
    rows, number = cohort(6, arms="ab", seed=5), 6
    keys = [
        ("primary", scope) for scope in ("tier:1", "tier:3", "sequence:lge", "subtask:L02", "subtask:D01")
    ]
    keys += [
        (metric, "tier:1") for metric in ("precision", "recall", "mean_cardinality", "criterion", "d_prime")
    ]
    by_hand: dict[tuple[str, str], list[float]] = {key: [] for key in keys}
    every = list(itertools.product((1, 0), repeat=number))
    other = {"a": "b", "b": "a"}
    for stays in every:
        kept = dict(zip(patients_of(number), stays, strict=True))
        swapped = [r if kept[r["patient_id"]] else r | {"arm_id": other[r["arm_id"]]} for r in rows]
        ours, theirs = (value(swapped, arm, number) for arm in "ab")
        for key in keys:
            by_hand[key].append(ours[key] - theirs[key])
    answers = Answers.of(table(rows), patients_of(number))
    mine, other_arm = (Cells.of(answers.of_arm(arm), number) for arm in "ab")
    sizes = [len(cells) for cells in mine.rows]

    def statistics(sums: Floats) -> dict[tuple[str, str], Floats]:
        return claimed_statistics(mine.parts, split(sums, sizes), 1)

    swaps = np.array(every, np.float32).T
    found = swap_p(stack(mine.rows), stack(other_arm.rows), statistics, swaps)
    for key in keys:
        differences = np.array(by_hand[key])
        extreme = ~(np.abs(differences) < abs(differences[0]) - 1e-9)
        assert found[key] == pytest.approx((1 + extreme.sum()) / 65), key


def test_swaps_repeat_and_fall_below_their_resolution_only_by_a_bound() -> None:
    ours, theirs = np.ones((1, 60)), np.zeros((1, 60))

    def total(sums: Floats) -> dict[tuple[str, str], Floats]:
        return {("primary", "tier:1"): sums[0] / 60}

    def p(first: Floats, second: Floats, seed: int = 1) -> float:
        return swap_p(first, second, total, coins(60, seed))["primary", "tier:1"]

    assert 0 < p(ours, theirs) < 1e-9
    assert p(ours, ours) == 1
    mixed = np.arange(60.0)[None] % 3
    assert p(mixed, theirs + 0.9) == p(mixed, theirs + 0.9) != p(mixed, theirs + 0.9, seed=2)
    assert p(ours[:, :1].repeat(60, axis=1) * (np.arange(60) < 3), theirs) >= 0.2


def overflowing(patients: int = 60) -> list[dict[str, Any]]:
    """Two models that answer alike; the second has no answer to the hard patients."""
    dice, rows = random.Random(2), []
    for number in range(patients):
        for subtask in ("C10", "L01", "D01"):
            parsed = "A" if dice.random() < (0.3 if number < 12 else 0.8) else "B"
            for arm in ("one", "two"):
                lost = {"status": "overflow", "parsed": None, "parse_status": None, "correct": None}
                gone = lost if arm == "two" and number < 12 else {}
                named = {"arm_id": arm, "request_key": f"{arm}{number}{subtask}"}
                rows.append(verdict(f"p{number:03d}", subtask, "A", parsed, **named) | gone)
    return rows


def test_models_are_ranked_on_items_that_all_were_judged_on() -> None:
    models = {"m1": {"clinical": ["one"]}, "m2": {"clinical": ["two"]}}
    found = {
        (row["arm_id"], row["versus_arm_id"], row["metric"], row["scope"]): row
        for row in score(table(overflowing()), 1, 200, 1, headlines=models, swaps=200).to_pylist()
    }
    alone = {name: found[f"headline:{name}", None, "primary", "tier:1"] for name in ("m1", "m2")}
    assert alone["m1"]["value"] == alone["m2"]["value"]
    assert all(row["method"].startswith("incomplete, 80.0 % of items") for row in alone.values())
    pair = found["headline:m1", "headline:m2", "primary", "tier:1"]
    assert pair["value"] == 0
    assert pair["low"] == -pair["high"] < 0, "that no item differs is no proof that none would"
    bounds = found["headline:m1", "headline:m2", "primary.bounds", "tier:1"]
    assert bounds["n_items"] == 24
    assert bounds["low"] < 0 < bounds["high"]
    whole = {arm: found[arm, None, "primary", "tier:1"]["value"] for arm in ("one", "two")}
    assert whole["two"] - whole["one"] > 5  # what was claimed before


def test_bounds_give_what_fell_out_to_either_side() -> None:
    rows = overflowing()
    scores = score(table(rows), 1, 50, 1, {"model | x": [("one", "two")]}, swaps=50).to_pylist()
    (bounds,) = [row for row in scores if (row["metric"], row["scope"]) == ("primary.bounds", "subtask:L01")]
    right = {(r["arm_id"], r["patient_id"]): r["correct"] for r in rows if r["subtask"] == "L01"}
    one = sum(bool(right["one", f"p{at:03d}"]) for at in range(60))
    two = sum(bool(right["two", f"p{at:03d}"]) for at in range(12, 60))
    assert (bounds["low"], bounds["high"]) == pytest.approx(
        (100 * (one - two - 12) / 60, 100 * (one - two) / 60)
    )
    (pair,) = [
        row
        for row in scores
        if (row["metric"], row["scope"]) == ("primary", "subtask:L01") and row["versus_arm_id"]
    ]
    assert pair["method"].startswith("incomplete, 12 of 60 items fell out; ")


def test_headlines_are_made_of_protocols_that_all_models_have() -> None:
    def arm(name: str, model: str, selector: str, simulated: bool = False) -> ArmFactors:
        return ArmFactors(name, model, selector, "16", "standard", simulated=simulated)

    arms = [arm("a", "m1", "clinical"), arm("b", "m1", "random@1"), arm("c", "m2", "clinical")]
    assert headlines(arms) == {"m1": {"clinical": ["a"]}, "m2": {"clinical": ["c"]}}
    arms.append(arm("d", "reader", "random@1", simulated=True))
    assert headlines(arms)["m1"] == {"clinical": ["a"]}
    apart = headlines([arm("b", "m1", "random@1"), arm("c", "m2", "clinical")])
    rows = score(table(cohort(8, arms="bc")), 1, 50, 1, headlines=apart, swaps=50).to_pylist()
    assert not [row for row in rows if row["versus_arm_id"] and row["arm_id"].startswith("headline:")]


def readers(kind: str, number: int = 8, patients: int = 150) -> list[dict[str, Any]]:
    """Readers that know half of the items, or are wrong on half, in tiers whose guesses are not alike."""
    dice, rows = random.Random(7), []
    shares = {"C10": (0.7, 0.1, 0.1, 0.1), "L01": (0.5, 0.5), "L02": (1 / 5,) * 5, "D01": (0.15, 0.15, 0.7)}
    for at in range(patients):
        for subtask, weights in shares.items():
            letters = "ABCDE"[: len(weights)]
            gold = dice.choices(letters, weights)[0]
            for reader in range(number):
                others = [letter for letter in letters if letter != gold]
                guess = dice.choices(letters, weights)[0] if kind == "knows" else dice.choice(others)
                parsed = gold if dice.random() < 0.5 else guess
                rows.append(verdict(f"p{at:03d}", subtask, gold, parsed, arm_id=f"r{reader}"))
    return rows


@pytest.mark.parametrize("kind", ["knows", "wrong"])
def test_eight_readers_alike_in_every_tier_decline_nowhere(kind: str) -> None:
    models = {f"m{reader}": {"clinical": [f"r{reader}"]} for reader in range(8)}
    scores = score(table(readers(kind)), 1, 50, 1, headlines=models, swaps=50).to_pylist()
    said = [found for found in landscape(scores).findings if "corrected for guessing" in found.sentence]
    assert [found.verdict for found in said] == ["cannot tell"]
    value = {(r["arm_id"], r["scope"]): r["value"] for r in scores if r["metric"] == "corrected_accuracy"}
    changes = [
        value[f"headline:{model}", "tier:3"] - value[f"headline:{model}", "tier:1"] for model in models
    ]
    # on corrected accuracy alone those that are wrong as often in every tier would decline
    assert (wilcoxon(np.array(changes)).p < 0.05) == (kind == "wrong")
    if kind == "knows":
        tier = [row["value"] for row in scores if row["metric"] == "corrected_accuracy"]
        assert np.mean(tier) == pytest.approx(50, abs=6)


def test_guessing_by_prevalence_gets_the_squared_shares() -> None:
    assert chance_accuracy(np.array([1, 1, 1, 2])) == pytest.approx(0.75**2 + 0.25**2)
    assert chance_accuracy(np.array([4, 4])) == 1


def test_equivalence_stands_beside_the_items_whose_requests_differ() -> None:
    rows = cohort(30, arms="ab")
    for row in rows:
        same = int(row["patient_id"][1:]) < 20
        row["request_key"] = row["qa_id"] if same else row["arm_id"] + row["qa_id"]
        if same:
            row["parsed"] = row["gold"]
    kept = [row for row in rows if int(row["patient_id"][1:]) >= 20]
    whole, apart = (
        {
            (row["metric"], row["scope"]): row
            for row in score(table(some), 1, 100, 1, {"selector | x": [("a", "b")]}, swaps=50).to_pylist()
            if row["versus_arm_id"]
        }
        for some in (rows, kept)
    )
    differing = whole["primary.equivalence_differing", "tier:1"]
    assert differing["value"] == pytest.approx(apart["primary", "tier:1"]["value"])
    assert (differing["n_items"], differing["n_patients"]) == (30, 10)
    assert whole["primary", "tier:1"]["n_same_request"] == 60
    assert ("primary.equivalence_differing", "tier:1") not in apart


def test_a_blind_reader_of_one_answer_is_named() -> None:
    rows = cohort(12, arms="ab")
    for row in rows:
        if row["arm_id"] == "b":
            row |= {"parsed": ["A"]}
    notes = []
    for blind in ("b", "a"):
        other = "a" if blind == "b" else "b"
        scores = score(table(rows), 1, 50, 1, gains=[(other, blind)], swaps=50).to_pylist()
        notes += [r["method"] for r in scores if (r["metric"], r["scope"]) == ("text_shortcut", "tier:1")]
    assert [note.startswith("one answer a subtask") for note in notes] == [True, False]
