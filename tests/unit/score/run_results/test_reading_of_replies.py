"""How replies were read: shares by model and arm, claims within bounds, other readings."""

import pytest
from mumbler import PROSE, Mumbler, asking_spec
from small_cohort import make_cohort, swept

from cardiolens.config.sweep_factors import arms
from cardiolens.protocol.replies.peer_readings import PEER_READINGS
from cardiolens.score.claims.sentences import basis
from cardiolens.score.run_results.reply_readings import READINGS, SHARES, judge_by_others
from cardiolens.score.statistics.comparisons import decided, reversed_row
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.tables import from_rows

LETTERS = ("A", "B", "C", "Z")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A sweep that asks back, and one of the same first replies that does not."""
    root = make_cohort(tmp_path_factory.mktemp("read"), 3)
    asking = swept(asking_spec(root), Mumbler(prose=8, silent=4))
    return asking, swept(asking_spec(root, asks_back=False), Mumbler(prose=8, silent=4))


def shares(judged):
    of_model, of_arm = judged.analyses[SHARES]
    assert of_model["arm_id"] is None
    assert {name: of_model[name] for name in READINGS} == {name: of_arm[name] for name in READINGS}
    return of_arm


def tier_one(scores):
    """The score of the one arm on tier 1."""
    (value,) = [
        row["value"] for row in scores.to_pylist() if (row["metric"], row["scope"]) == ("primary", "tier:1")
    ]
    return value


def test_shares_with_and_without_second_turns(runs):
    (_, asking), (_, silent) = runs
    back, once = shares(asking), shares(silent)
    assert sum(back[name] for name in READINGS) == pytest.approx(100)
    assert back["unread"] == 0 < back["no_answer"] < 100
    assert once["asked_back"] == once["no_answer"] == 0
    assert once["unread"] == pytest.approx(back["asked_back"] + back["no_answer"])
    assert back["at_once"] == once["at_once"]
    assert tier_one(silent.scores) < tier_one(asking.scores)
    assert back["once_tier_1"] == pytest.approx(tier_one(silent.scores)), "asked back counts as wrong"
    assert back["high_tier_1"] == pytest.approx(tier_one(asking.scores)), "nothing is unread"
    assert once["high_tier_1"] > tier_one(asking.scores)


def test_readings_of_others_are_scored_beside_the_strict_one(runs):
    (planned, asking), (_, silent) = runs
    keys = {name: identity.model_key for name, identity in planned.identities.items()}
    rows = judge_by_others(planned.run, planned.store, keys, planned.spec, asking.replies.verdict_store)
    by_tier = {row["scope"]: row for row in rows}
    assert set(by_tier) == {"tier:1", "tier:3"}
    row = by_tier["tier:1"]
    assert row["model"] == arms(planned.spec)[0].arm_id
    assert row["strict"] == pytest.approx(tier_one(asking.scores))
    assert row["last_answer"] == pytest.approx(tier_one(silent.scores))
    assert {row[f"{name}_rank"] for name in PEER_READINGS} == {1}


def test_differences_have_bounds_over_unread_replies_and_a_claim_must_hold_within_them(runs):
    (_, (_, silent)) = runs
    verdicts = silent.replies.verdicts
    (arm,) = set(verdicts["arm_id"].to_pylist())
    rows = verdicts.to_pylist()
    right = [row | {"arm_id": "right", "parsed": row["gold"], "parse_status": "ok"} for row in rows]
    both = from_rows([*rows, *right], VERDICTS)
    best = [row | {"parsed": row["gold"]} if row["parse_status"] == "parse_error" else row for row in rows]
    highest = tier_one(score(from_rows(best, VERDICTS), [], Settings(1, 50, 0)).scores)
    arms = [ArmFactors(name, "m", "clinical", "16", prompt) for name, prompt in (("right", "a"), (arm, "b"))]
    found = score(both, arms, Settings(1, 50, 0)).comparisons.to_pylist()
    (row,) = [row for row in found if row["arm_id"] and (row["metric"], row["tier"]) == ("primary", 1)]
    row = row if row["arm_id"] == "right" else reversed_row(row)
    assert row["difference"] == pytest.approx(100 - tier_one(silent.scores))
    assert row["high_bound"] == pytest.approx(row["difference"])
    assert row["low_bound"] == pytest.approx(100 - highest)
    assert row["n_dropped"] > 0
    assert not row["is_incomplete"]
    shown = {**row, "n_patients": 100, "low": 1.0, "high": 99.0, "p_adjusted": 0.001, "adjustment": "holm"}
    assert decided(shown)["decision"] == "higher"
    assert decided(shown | {"low_bound": -1.0})["decision"] == "open"
    assert f"{row['n_dropped']} items fell out or were not read, with them between " in basis(row)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ANSWER: A\nANSWER: B, C", ("BC", "A", "ABC")),
        ("Answer: (Z)", ("Z", "Z", "Z")),
        ("A mass. Probably B.", ("", "A", "AB")),
        ("ANSWER: none", ("", "", "")),
        ("ANSWER: D", ("", "", "")),
        ("the answer: b and c", ("BC", "", "")),
        (PROSE, ("", "", "")),
    ],
)
def test_rules_of_others(text, found):
    assert tuple("".join(rule(text, LETTERS)) for rule in PEER_READINGS.values()) == found
