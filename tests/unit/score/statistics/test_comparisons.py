"""What a comparison allows to say: signs, the margin, bounds of dropped items, and families of tests."""

import math
from typing import Any

import pytest

from cardiolens.score.claims.sentences import sentence
from cardiolens.score.statistics.comparisons import concluded, decided, reversed_row
from cardiolens.score.statistics.factors import ArmFactors, families
from cardiolens.score.statistics.hypothesis_tests import adjusted
from cardiolens.storage.schemas import COMPARISONS
from cardiolens.storage.tables import from_rows

ROW = {
    **{"arm_id": "a", "versus_arm_id": "b", "factor": "prompt", "level": "reasoning", "versus": "standard"},
    **{"metric": "primary", "tier": 1, "model": "m", "simulated": False, "method": "bootstrap"},
    **{"difference": 10.0, "low": 5.0, "high": 15.0, "low_90": 6.0, "high_90": 14.0},
    **{"n_items": 200, "n_patients": 100, "p": 0.001, "p_adjusted": 0.01, "adjustment": "holm"},
    **{"family": "what the run varied", "family_size": 12, "within_p_adjusted": 1.0},
    **{"beyond_p_adjusted": 0.01},
}


def row(**changes: Any) -> dict[str, Any]:
    (made,) = from_rows([ROW | changes], COMPARISONS).to_pylist()
    return made | decided(made)


def test_a_difference_whose_tests_agree_is_claimed_with_its_side() -> None:
    assert row()["decision"] == "higher"
    assert row(difference=-10.0, low=-15.0, high=-5.0)["decision"] == "lower"


@pytest.mark.parametrize(
    "changes",
    [
        {"p_adjusted": 0.06},
        {"low": -1.0},
        {"low_bound": -1.0, "high_bound": 20.0},
        {"low": float("nan"), "high": float("nan")},
        {"n_patients": 3},
        {"metric": "d_prime", "read_difference": 5.0},
    ],
)
def test_what_one_condition_does_not_carry_stays_open(changes: dict[str, Any]) -> None:
    assert row(**changes)["decision"] == "open"


def test_what_is_explored_is_never_claimed() -> None:
    explored = row(adjustment="fdr")
    assert (explored["decision"], explored["margin"]) == ("explored", None)


def test_equivalence_rests_on_items_that_differ() -> None:
    near = {"difference": 0.0, "low": -1.5, "high": 1.5, "low_90": -1.0, "high_90": 1.0}
    near |= {"within_p_adjusted": 0.01}
    assert row(**near)["margin"] == "within"
    assert row(**near, n_same_request=200)["margin"] is None
    assert row(**near, low_bound=-3.0, high_bound=3.0)["margin"] is None


def test_a_comparison_reversed_twice_is_itself() -> None:
    made = row(n_unread=3, n_unread_versus=1, low_bound=1.0, high_bound=20.0)
    back = reversed_row(made)
    assert (back["level"], back["difference"], back["decision"]) == ("standard", -10.0, "lower")
    assert reversed_row(back) == made


def test_families_are_adjusted_each_for_itself_and_single_tests_by_nothing() -> None:
    plain = {name: value for name, value in ROW.items() if "adjusted" not in name and name != "family_size"}
    values = [0.001, 0.02, 0.03, 0.5]
    rows = [{**plain, "p": p} for p in values]
    untested = {**plain, "p": math.nan}  # of too few patients
    rows += [{**plain, "p": p, "family": "pairs", "adjustment": "fdr"} for p in values]
    rows.append({**plain, "family": None, "p": 0.04, "p_adjusted": 0.04})
    *found, last = from_rows(concluded([*rows, untested]), COMPARISONS).to_pylist()
    assert (last["family_size"], last["decision"]) == (4, "open")
    assert [one["p_adjusted"] for one in found[:4]] == pytest.approx(list(adjusted(values, "holm")))
    assert [one["p_adjusted"] for one in found[:4]] == pytest.approx([0.004, 0.06, 0.06, 0.5])
    assert [one["p_adjusted"] for one in found[4:8]] == pytest.approx([0.004, 0.04, 0.04, 0.5])
    assert [one["decision"] for one in found] == [
        "higher",
        *["open"] * 3,
        *["explored"] * 3,
        "open",
        "higher",
    ]
    assert [one["family_size"] for one in found] == [*[4] * 8, None]


def test_a_sentence_says_first_the_result_and_then_whether_it_is_claimed() -> None:
    claimed, open_ = sentence(row()), sentence(row(p_adjusted=0.2))
    assert "not claimed" in open_
    assert "not claimed" not in claimed
    assert open_.index("10") < open_.index("not claimed")


def test_a_sentence_says_what_fell_out_and_what_was_not_read() -> None:
    words = sentence(row(n_dropped=40, low_bound=-1.0, high_bound=19.0, is_incomplete=True))
    assert "; incomplete, 40 items fell out or were not read, with them between −1.0 and 19.0" in words
    assert "not claimed" in words
    assert "undefined" in sentence(row(difference=float("nan"), low=float("nan"), high=float("nan")))
    assert "(95 % CI 5.0 to 15.0; 100 patients, 1 item)" in sentence(row(n_items=1))


def test_an_interval_is_of_what_the_sentence_says() -> None:
    lower = sentence(row(difference=-10.0, low=-15.0, high=-5.0))
    assert "lower by 10.0 points (95 % CI 5.0 to 15.0;" in lower
    open_ = sentence(row(difference=-1.0, low=-4.0, high=2.0))
    assert "lower by 1.0 points (95 % CI of the difference −4.0 to 2.0;" in open_


@pytest.mark.parametrize(
    ("changes", "margin", "words"),
    [
        (
            {"difference": 0.4, "low": -0.9, "high": 1.6, "low_90": -0.6, "high_90": 1.3, "p_adjusted": 0.8},
            "within",
            "equivalent within 2 points (p = 0.01 after Holm)",
        ),
        ({"difference": 0.0, "low": -4.0, "high": 4.0, "low_90": -3.0, "high_90": 3.0}, None, "not claimed"),
        ({"low_90": 6.0, "high_90": 14.0}, "beyond", "claimed, by more than 2 points"),
        ({"low_90": 6.0, "high_90": 14.0, "beyond_p_adjusted": 0.08}, None, "claimed (p = 0.01 after Holm"),
    ],
)
def test_the_margin_in_words(changes: dict[str, Any], margin: str | None, words: str) -> None:
    made = row(**{"within_p_adjusted": 0.01, **changes})
    assert made["margin"] == margin
    assert words in sentence(made)


def test_an_open_difference_names_what_the_cohort_detects() -> None:
    words = sentence(row(difference=3.0, low=-0.5, high=6.5, p_adjusted=0.08, family_size=9))
    assert "not claimed (p = 0.08 after Holm over 9; this cohort detects a difference of " in words
    assert " with 80 % power" in words


def arm(name: str, **changes: str) -> ArmFactors:
    given = {"model": "m", "selector": "clinical", "budget": "16", "prompt": "standard", "control": "none"}
    return ArmFactors(name, **(given | changes))


def test_families_hold_pairs_one_factor_apart_and_order_budgets_as_numbers() -> None:
    arms = [arm("a"), arm("b", selector="random@1"), arm("c", prompt="reasoning"), arm("d", control="blind")]
    arms += [arm("e", budget="8"), arm("f", selector="random@1", prompt="reasoning")]
    arms += [arm(f"m{size}", model="n", budget=f"tokens:{size}") for size in (8192, 16384)]
    assert families(arms) == {
        "selector": [("b", "a"), ("f", "c")],
        "budget": [("a", "e"), ("m16384", "m8192")],
        "prompt": [("c", "a"), ("f", "b")],
        "control": [("a", "d")],
    }
