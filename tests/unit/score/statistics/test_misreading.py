"""The rate of misreading from a stratified sample: its interval holds the truth (simulated)."""

import math
import random

import pytest

from cardiolens.curation.review.audit import allocate, draw
from cardiolens.score.statistics.misreading import Stratum, misreading, shift

RULES = {"ok: answer_line": 0.62, "ok: letters": 0.2, "ok: option_text": 0.08, "ok: answer_phrase": 0.04} | {
    "parse_error: none": 0.05,
    "inconsistent: answer_line": 0.01,
}


def audited(
    dice: random.Random, rate_of: dict[str, float], n_replies: int, per_model: int
) -> tuple[float, list[Stratum]]:
    """One run with planted misreadings: their true rate, and the strata that an audit finds."""
    rows = []
    for place in range(n_replies):
        (name,) = dice.choices(list(RULES), weights=list(RULES.values()))
        status, _, rule = name.partition(": ")
        planted = dice.random() < rate_of.get(name, 0.0)
        rows.append(
            {
                "model": "m",
                "arm_id": "a",
                "qa_id": str(place),
                "parse_status": status,
                "rule": rule,
                "planted": planted,
            }
        )
    sample = draw(rows, per_model, seed=dice.randrange(2**30))
    strata = []
    for name, size in sample.sizes["m"].items():
        drawn = [rows[int(one.qa_id)]["planted"] for one in sample.replies if one.stratum == name]
        strata.append(Stratum(size, len(drawn), sum(drawn)))
    return sum(row["planted"] for row in rows) / n_replies, strata


@pytest.mark.full
@pytest.mark.parametrize(
    ("rate_of", "per_model"),
    [
        (dict.fromkeys(RULES, 0.03), 200),  # anywhere
        ({"ok: answer_phrase": 0.4, "ok: option_text": 0.17}, 200),  # where rules are young, 3 % of all
        ({"ok: answer_line": 0.048}, 200),  # in the largest stratum alone, 3 % of all
    ],
)
def test_three_percent_planted_are_told_as_three_percent_in_93_of_100_trials(
    rate_of: dict[str, float], per_model: int
) -> None:
    dice = random.Random(41)
    held, values = 0, []
    for _ in range(300):
        truth, strata = audited(dice, rate_of, 2_000, per_model)
        estimate = misreading(strata)
        held += estimate.low <= truth <= estimate.high
        values.append(estimate.value - truth)
    assert held >= 0.93 * 300, held
    assert abs(sum(values) / len(values)) < 0.003


def test_all_replies_read_leave_no_doubt() -> None:
    estimate = misreading([Stratum(10, 10, 1), Stratum(30, 30, 0)])
    assert (
        estimate.value == pytest.approx(estimate.low) == pytest.approx(estimate.high) == pytest.approx(1 / 40)
    )


def test_what_nobody_read_may_be_all_misread() -> None:
    estimate = misreading([Stratum(90, 90, 0), Stratum(10, 0, 0)])
    assert (estimate.low, estimate.high) == (0.0, pytest.approx(0.1))
    assert math.isnan(misreading([Stratum(5, 0, 0)]).value)
    assert misreading([Stratum(5, 0, 0)]).high == 1.0


def test_no_misreading_found_is_not_none() -> None:
    assert 0 < misreading([Stratum(2_000, 200, 0)]).high < 0.03


def test_the_share_right_moves_by_what_the_person_reads_otherwise() -> None:
    estimate = shift([Stratum(100, 50, 5, -5), Stratum(100, 50, 0, 0)])
    assert estimate.value == pytest.approx(-0.05)
    assert estimate.low < -0.05 < estimate.high


def test_every_stratum_is_read_and_young_rules_more() -> None:
    numbers = allocate({"ok: answer_line": 500, "ok: answer_phrase": 500, "truncated: none": 3}, 100)
    assert 97 <= sum(numbers.values()) <= 103
    assert numbers["truncated: none"] == 3
    assert numbers["ok: answer_phrase"] > 1.5 * numbers["ok: answer_line"]
    assert allocate({"ok: letters": 7}, 100) == {"ok: letters": 7}
