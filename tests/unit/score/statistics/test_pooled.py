"""Questions pooled over models: which pairs answer them, their means, spread and gates (protocol 17.6)."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[4]))
from bench.claims import arms_of, verdicts
from cardiolens.score.statistics.between_models import between_models
from cardiolens.score.statistics.factors import ArmFactors, families
from cardiolens.score.statistics.multiple_testing import HOLM_P
from cardiolens.score.statistics.pooled_questions import DOUBLING, PooledQuestion, pooled_questions
from cardiolens.score.statistics.scores import score
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.tables import from_rows

Rows = dict[tuple[str, str, str, str], dict[str, object]]


def named(questions: list[PooledQuestion]) -> dict[tuple[str, str, str], PooledQuestion]:
    return {(one.factor, one.ours, one.theirs): one for one in questions}


def rows_of(arms: list[ArmFactors], rows: list[dict[str, object]]) -> Rows:
    table = score(
        from_rows(rows, VERDICTS), 5, 200, 1, families(arms), pooled=pooled_questions(arms), swaps=200
    )
    return {
        (row["arm_id"], row["versus_arm_id"], row["metric"], row["scope"]): row for row in table.to_pylist()
    }


def test_every_factor_that_a_run_varies_is_one_question() -> None:
    arms = arms_of(("clinical", "random@1"), ("4", "8", "16"), ("standard", "reasoning"), ("a", "b"))
    asked = named(pooled_questions(arms))
    assert [*asked] == [
        ("selector", "random", "clinical"),
        ("budget", "16", "4"),
        ("budget", DOUBLING, "4"),
        ("prompt", "reasoning", "standard"),
    ]
    assert {model: len(pairs) for model, pairs in asked["budget", "16", "4"].weights.items()} == {
        "a": 4,
        "b": 4,
    }
    for question in (one for key, one in asked.items() if DOUBLING not in key):
        for weights in question.weights.values():
            assert sum(weights.values()) == pytest.approx(1)


def test_seeds_are_averaged_before_settings() -> None:
    arms = arms_of(("clinical", "random@1", "random@2"), ("4", "8"), ("standard",))
    (weights,) = named(pooled_questions(arms))["selector", "random", "clinical"].weights.values()
    assert [*weights.values()] == [0.25] * 4
    (weights,) = named(pooled_questions(arms))["budget", "8", "4"].weights.values()
    assert weights["model-random@1-8-standard", "model-random@1-4-standard"] == 0.25  # as much as its seeds
    assert weights["model-clinical-8-standard", "model-clinical-4-standard"] == 0.5


def test_a_question_rests_on_settings_that_all_its_models_share() -> None:
    arms = arms_of(("clinical", "random@1"), ("4", "8"), ("standard",), ("a",))
    arms += arms_of(("clinical", "random@1"), ("8",), ("standard",), ("b",))
    arms += arms_of(("clinical",), ("8",), ("standard",), ("c",))
    asked = named(pooled_questions(arms))
    of_selection = asked["selector", "random", "clinical"]
    assert (of_selection.settings, [*of_selection.weights]) == (1, ["a", "b"])
    assert [*asked["budget", "8", "4"].weights] == ["a"]
    apart = arms_of(("clinical", "random@1"), ("4",), ("standard",), ("a",))
    apart += arms_of(("clinical", "random@1"), ("8",), ("standard",), ("b",))
    assert pooled_questions(apart) == []


def test_simulated_readers_answer_no_question() -> None:
    reader = [
        ArmFactors(f"o{budget}", "oracle", "clinical", budget, "standard", simulated=True) for budget in "48"
    ]
    assert pooled_questions(reader) == []


def test_images_are_compared_with_each_control_in_the_same_setting() -> None:
    arms = [
        ArmFactors(f"{control}-{prompt}", "a", "clinical", "8", prompt, control)
        for control in ("none", "blind", "captions")
        for prompt in ("standard", "reasoning")
    ]
    asked = named(pooled_questions(arms))
    assert ("control", "none", "captions") in asked
    assert [*asked["control", "none", "blind"].weights["a"]] == [
        ("none-reasoning", "blind-reasoning"),
        ("none-standard", "blind-standard"),
    ]


@pytest.mark.full
def test_a_pooled_difference_is_the_mean_of_its_models_and_settings() -> None:
    arms = arms_of(("clinical", "random@1", "random@2"), ("4", "8", "16"), ("standard",), ("a", "b"))
    rows = rows_of(arms, verdicts(arms, 20, np.random.default_rng(1)))
    value = {
        (arm, scope): float(str(row["value"]))
        for (arm, versus, metric, scope), row in rows.items()
        if versus is None and metric == "primary"
    }
    for tier in ("tier:1", "tier:3"):
        of_models = []
        for model in "ab":
            gains = [
                np.mean([value[f"{model}-random@{seed}-{budget}-standard", tier] for seed in (1, 2)])
                - value[f"{model}-clinical-{budget}-standard", tier]
                for budget in (4, 8, 16)
            ]
            of_models.append(float(np.mean(gains)))
            sides = f"pooled:selector=random:{model}", f"pooled:selector=clinical:{model}"
            assert rows[*sides, "primary", tier]["value"] == pytest.approx(of_models[-1])
        pooled = rows["pooled:selector=random", "pooled:selector=clinical", "primary", tier]
        assert pooled["value"] == pytest.approx(np.mean(of_models))
        assert "mean over 2 models in 3 settings" in str(pooled["method"])
        slopes = [
            np.polyfit(
                [2, 3, 4], [value[f"{model}-{selector}-{budget}-standard", tier] for budget in (4, 8, 16)], 1
            )[0]
            for model in "ab"
            for selector in ("clinical", "clinical", "random@1", "random@2")
        ]
        slope = rows[f"pooled:budget={DOUBLING}", "pooled:budget=4", "primary", tier]
        assert slope["value"] == pytest.approx(np.mean(slopes))


def test_questions_are_one_family_and_open_those_of_their_models() -> None:
    arms = arms_of(("clinical", "random@1"), ("8",), ("standard", "reasoning"), ("a", "b", "c"))
    rows = rows_of(arms, verdicts(arms, 60, np.random.default_rng(2), better=0.8))
    prompt = "pooled:prompt=reasoning", "pooled:prompt=standard"
    adjusted = rows[*prompt, f"primary.{HOLM_P}", "tier:1"]
    assert float(str(adjusted["value"])) <= 0.05
    assert "Holm over 10 comparisons pooled over models" in str(adjusted["method"])
    of_model = rows[f"{prompt[0]}:a", f"{prompt[1]}:a", f"primary.{HOLM_P}", "tier:1"]
    assert "Holm over 3 models, times" in str(of_model["method"])
    selection = "pooled:selector=random", "pooled:selector=clinical"
    assert float(str(rows[*selection, f"primary.{HOLM_P}", "tier:1"]["value"])) > 0.05
    assert (f"{selection[0]}:a", f"{selection[1]}:a", f"primary.{HOLM_P}", "tier:1") not in rows
    assert rows[*prompt, "primary.models_above", "tier:1"]["value"] == 3


@pytest.mark.parametrize("deviation", [0.0, 0.03, 0.1])
def test_the_spread_between_models_leaves_out_what_their_patients_share(deviation: float) -> None:
    held, next_held, found = [], [], []
    for seed in range(200):
        dice = np.random.default_rng([7, seed])
        true = 0.02 + dice.normal(0, deviation, 9)
        shared, own = dice.normal(0, 0.05), dice.normal(0, 0.04, 8)
        resampled = dice.normal(0, 0.05, (1, 400)) + dice.normal(0, 0.04, (8, 400))
        effects = np.concatenate([(true[:8] + shared + own)[:, None], resampled], axis=1)
        spread = between_models(effects, 1000 / 999)
        assert spread is not None
        found.append(spread.deviation.value**2)
        held.append(spread.deviation.low <= deviation + 1e-12 <= spread.deviation.high + 1e-9)
        next_held.append(spread.next_model.low <= true[8] <= spread.next_model.high)
    assert np.mean(held) >= 0.92
    assert np.mean(next_held) >= 0.92
    if deviation:
        assert np.mean(found) == pytest.approx(deviation**2, rel=0.5)


def test_two_models_have_no_spread() -> None:
    assert between_models(np.zeros((2, 10)), 20 / 19) is None


def test_settings_whose_requests_are_all_the_same_do_not_dilute_those_that_differ() -> None:
    arms = arms_of(("clinical", "random@1"), ("4", "64"), ("standard",), ("a", "b"))
    rows = verdicts(arms, 40, np.random.default_rng(4))
    of_arm = {(row["arm_id"], row["qa_id"]): row for row in rows}
    for row in rows:  # with 64 frames both selections send the whole study
        if "random@1-64" in str(row["arm_id"]):
            whole = of_arm[str(row["arm_id"]).replace("random@1", "clinical"), row["qa_id"]]
            row |= {name: whole[name] for name in ("request_key", "parsed", "parse_status")}
    found = rows_of(arms, rows)
    sides = "pooled:selector=random", "pooled:selector=clinical"
    differing = float(str(found[*sides, "primary.equivalence_differing", "tier:1"]["value"]))
    assert differing == pytest.approx(2 * float(str(found[*sides, "primary", "tier:1"]["value"])))
    assert differing
