"""What claims rest on: swaps of patients, common items, corrected accuracy."""

import itertools
import random
from typing import Any

import numpy as np
import pytest
from made_verdicts import cohort, table, verdict

from cardiolens.score.statistics.arm_statistics import arm_statistics, chance_accuracy
from cardiolens.score.statistics.counting import cells_of, claimed_values
from cardiolens.score.statistics.factors import ArmFactors, headlines
from cardiolens.score.statistics.hypothesis_tests import coins, swap_p
from cardiolens.score.statistics.items import ArmAnswers, Floats
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Resampling, Settings


def patients_of(number: int) -> list[str]:
    return [f"p{at:03d}" for at in range(number)]


def value(rows: list[dict[str, Any]], arm: str, number: int) -> dict[tuple[str, str], float]:
    """Every statistic of an arm by the code that makes intervals."""
    found = arm_statistics(
        ArmAnswers.of(table(rows)).judged(arm), Resampling(Settings(1, 0, 1), np.ones((1, number)))
    )
    return {key: float(statistic.values[0]) for key, statistic in found.items()}


@pytest.mark.full
def test_swaps_test_the_statistic_of_the_interval() -> None:
    """All 64 swaps of six patients, each written out as lists of verdicts, against sums of cells."""
    rows, number = cohort(6, arms="ab", seed=5), 6
    keys = [("primary", "tier:1"), ("primary", "tier:3"), ("criterion", "tier:3"), ("d_prime", "tier:3")]
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
    answers = ArmAnswers.of(table(rows))
    mine, other_arm = (cells_of(answers.judged(arm), number) for arm in "ab")
    sizes = [len(cells) for cells in mine.values()]

    def statistics(sums: Floats) -> dict[tuple[str, str], Floats]:
        return claimed_values(mine, np.split(sums, np.cumsum(sizes)[:-1]), 1)

    swaps = np.array(every, np.float32).T
    found = swap_p(*(np.concatenate([*of.values()]) for of in (mine, other_arm)), statistics, swaps)
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


def arm(name: str, model: str, selector: str = "clinical", **changes: Any) -> ArmFactors:
    return ArmFactors(name, model, selector, "16", **{"prompt": "standard", **changes})


def results(rows: list[dict[str, Any]], *arms: ArmFactors) -> tuple[list[dict[str, Any]], ...]:
    """The rows of scores and of comparisons."""
    return tuple(made.to_pylist() for made in score(table(rows), arms, Settings(1, 200, 1, swaps=200)))


def test_models_are_ranked_on_items_that_all_were_judged_on() -> None:
    scores, compared = results(overflowing(), arm("one", "m1"), arm("two", "m2"))
    primary = {row["arm_id"]: row for row in scores if (row["metric"], row["scope"]) == ("primary", "tier:1")}
    assert primary["headline:m1"]["value"] == primary["headline:m2"]["value"]
    assert [primary[f"headline:{name}"]["percent_judged"] for name in ("m1", "m2")] == pytest.approx([80, 80])
    (pair,) = [row for row in compared if row["level"] == "m1" and row["arm_id"] is None and row["tier"] == 1]
    assert pair["difference"] == 0
    assert pair["low"] == -pair["high"] < 0, "that no item differs is no proof that none would"
    assert (pair["n_dropped"], pair["is_incomplete"]) == (24, True)
    assert pair["low_bound"] < 0 < pair["high_bound"]
    assert primary["two"]["value"] - primary["one"]["value"] > 5  # what was claimed before


def test_an_arm_without_a_judged_item_is_compared_with_nothing() -> None:
    silent = {"status": "missing", "parsed": None, "parse_status": None, "correct": None, "counts": None}
    rows = [row | silent if row["arm_id"] in ("b", "c") else row for row in cohort(10, arms="abc")]
    scores, compared = results(rows, *(arm(name, f"m{name}") for name in "abc"))
    assert {row["arm_id"] for row in scores} == {"a", "headline:ma"}
    assert {row["factor"] for row in compared} == {"collapse"}


def test_bounds_give_what_fell_out_to_either_side() -> None:
    rows = [row for row in overflowing() if row["subtask"] == "L01"]
    _, compared = results(rows, arm("one", "m1"), arm("two", "m1", prompt="reasoning"))
    (pair,) = [row for row in compared if row["arm_id"] == "two" and row["metric"] == "primary"]
    right = {(r["arm_id"], r["patient_id"]): r["correct"] for r in rows}
    one = sum(bool(right["one", f"p{at:03d}"]) for at in range(60))
    two = sum(bool(right["two", f"p{at:03d}"]) for at in range(12, 60))
    assert (pair["low_bound"], pair["high_bound"]) == pytest.approx(
        (100 * (two - one) / 60, 100 * (two + 12 - one) / 60)
    )
    assert (pair["n_dropped"], pair["is_incomplete"], pair["n_items"]) == (12, True, 48)


def test_headlines_are_made_of_protocols_that_all_models_have() -> None:
    arms = [arm("a", "m1", "clinical"), arm("b", "m1", "random@1"), arm("c", "m2", "clinical")]
    assert headlines(arms) == {"m1": {"clinical": ["a"]}, "m2": {"clinical": ["c"]}}
    arms.append(arm("d", "reader", "random@1", simulated=True))
    assert headlines(arms)["m1"] == {"clinical": ["a"]}
    for selector in ("clinical", "random@2"):
        apart = arm("b", "m1", "random@1"), arm("c", "m2", selector)
        assert not [row for row in results(cohort(8, arms="bc"), *apart)[1] if row["factor"] == "model"]


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
    arms = [arm(f"r{reader}", f"m{reader}") for reader in range(8)]
    scores, compared = results(readers(kind), *arms)
    (change,) = [row for row in compared if row["metric"] == "corrected_accuracy"]
    assert (change["level"], change["versus"], change["decision"]) == ("tier:3", "tier:1", "open")
    # on corrected accuracy alone those that are wrong as often in every tier would decline
    if kind == "wrong":
        assert change["high"] < 0
    else:
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
    arms = arm("a", "m"), arm("b", "m", "random@1")
    whole, apart = (
        next(row for row in results(some, *arms)[1] if row["arm_id"] and row["tier"] == 1)
        for some in (rows, kept)
    )
    assert whole["n_same_request"] == 60
    assert whole["differing_low_90"] < apart["difference"] < whole["differing_high_90"]
    assert whole["differing_high_90"] - whole["differing_low_90"] > whole["high_90"] - whole["low_90"]
    assert apart["differing_low_90"] is None


def test_a_headline_averages_seeds_before_selections() -> None:
    arms = [arm("a", "m"), arm("b", "m", "random@1"), arm("c", "m", "random@2")]
    assert headlines(arms) == {"m": {"clinical": ["a"], "random": ["b", "c"]}}
    rows = cohort(40, arms="abc")
    scores = results(rows, *arms)[0]
    value = {row["arm_id"]: row for row in scores if (row["metric"], row["scope"]) == ("primary", "tier:1")}
    wanted = (value["a"]["value"] + (value["b"]["value"] + value["c"]["value"]) / 2) / 2
    assert value["headline:m"]["value"] == pytest.approx(wanted)
    assert value["headline:m"]["n_items"] == 3 * value["a"]["n_items"]
    assert value["headline:m"]["method"].startswith("mean over selection protocols clinical random (3 arms)")
