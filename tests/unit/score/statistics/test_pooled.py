"""Questions pooled over models: which pairs answer them, their means, spread and gates."""

import numpy as np
import pytest

from bench.claims import arms_of, claims, compared, verdicts
from cardiolens.score.claims.sentences import sentence
from cardiolens.score.statistics.bootstrap import Basis
from cardiolens.score.statistics.comparisons import Effect
from cardiolens.score.statistics.factors import ArmFactors, PooledQuestion, families, pooled_questions
from cardiolens.score.statistics.pooled import between_models, effects_of
from cardiolens.score.statistics.statistic import Row, Statistic


def named(questions: list[PooledQuestion]) -> dict[tuple[str, str, str], PooledQuestion]:
    return {(one.factor, one.level, one.versus): one for one in questions}


def pooled(rows: list[Row], factor: str, tier: int = 1, model: str | None = None) -> Row:
    """The difference of scores over all models, or in one; the first where a factor has several."""
    return next(
        row
        for row in rows
        if (row["factor"], row["tier"], row["model"], row["metric"]) == (factor, tier, model, "primary")
        and row["n_settings"] is not None
    )


def test_every_factor_that_a_run_varies_is_one_question() -> None:
    arms = arms_of(("clinical", "random@1"), ("4", "8", "16"), ("standard", "reasoning"), ("a", "b"))
    asked = named(pooled_questions(arms))
    assert [*asked] == [
        ("selector", "random", "clinical"),
        ("budget", "16", "4"),
        ("prompt", "reasoning", "standard"),
    ]
    assert {model: len(pairs) for model, pairs in asked["budget", "16", "4"].weights.items()} == {
        "a": 4,
        "b": 4,
    }
    for question in asked.values():
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


@pytest.mark.parametrize(("selector", "sign"), [("random", 1), ("all", -1)])
def test_a_pair_compared_in_the_other_direction_counts_with_the_other_sign(selector: str, sign: int) -> None:
    """Pairs are in the order of their names, and a selection is compared with the clinical one."""
    arms = [ArmFactors(name, "m", name, "16", "standard") for name in ("clinical", selector)]
    (pair,) = families(arms)["selector"]
    (asked,) = pooled_questions(arms)
    assert (asked.level, asked.versus, asked.weights) == (selector, "clinical", {"m": {pair: sign}})
    key = ("primary", "tier:1"), False
    effect = Effect.of(Statistic(np.array([0.1, 0.3]), Basis(9, 9, 0, 0), of_pairs=True))
    found = effects_of(asked, {pair: {key: effect}})[key]["m"]
    assert found.statistic.values.tolist() == [sign * 0.1, sign * 0.3]


@pytest.mark.full
def test_a_pooled_difference_is_the_mean_of_its_models_and_settings() -> None:
    arms = arms_of(("clinical", "random@1", "random@2"), ("4", "8", "16"), ("standard",), ("a", "b"))
    scores, rows = compared(arms, verdicts(arms, 20, np.random.default_rng(1)), 200, 200)
    value = {(row["arm_id"], row["scope"]): row["value"] for row in scores if row["metric"] == "primary"}
    for tier in (1, 3):
        of_models = []
        for model in "ab":
            gains = [
                np.mean(
                    [value[f"{model}-random@{seed}-{budget}-standard", f"tier:{tier}"] for seed in (1, 2)]
                )
                - value[f"{model}-clinical-{budget}-standard", f"tier:{tier}"]
                for budget in (4, 8, 16)
            ]
            of_models.append(float(np.mean(gains)))
            assert pooled(rows, "selector", tier, model)["difference"] == pytest.approx(of_models[-1])
        row = pooled(rows, "selector", tier)
        assert row["difference"] == pytest.approx(np.mean(of_models))
        assert (row["n_models"], row["n_settings"]) == (2, 3)


def test_questions_are_one_family_and_open_those_of_their_models(better_prompt: list[Row]) -> None:
    prompt, selection = (pooled(better_prompt, factor) for factor in ("prompt", "selector"))
    assert (prompt["decision"], selection["decision"]) == ("higher", "open")
    assert prompt["p_adjusted"] <= 0.05 < selection["p_adjusted"]
    assert prompt["family_size"] == selection["family_size"] == 14
    of_model = pooled(better_prompt, "prompt", model="b")
    assert (of_model["family_size"], of_model["decision"]) == (3, "higher")
    assert pooled(better_prompt, "selector", model="b")["p_adjusted"] is None
    assert prompt["n_models_above"] == 3
    assert prompt["next_low"] < prompt["difference"] < prompt["next_high"]
    assert 0 <= prompt["spread_low"] <= prompt["spread"] <= prompt["spread_high"]


def test_an_effect_of_all_models_is_one_sentence_that_says_the_result_first(better_prompt: list[Row]) -> None:
    words = sentence(pooled(better_prompt, "prompt"))
    assert words.startswith("reasoning prompt − standard, score on tier 1 over all models: higher by ")
    assert words.index("95 % CI") < words.index("claimed") < words.index(" after Holm over 14")
    assert "of b: higher by " in sentence(pooled(better_prompt, "prompt", model="b"))


def test_what_does_nothing_is_no_claim_and_pairs_of_arms_are_explored(better_prompt: list[Row]) -> None:
    assert "not claimed" in sentence(pooled(better_prompt, "budget"))
    pairs = [row for row in better_prompt if row["arm_id"] is not None and row["factor"] != "model"]
    assert {row["adjustment"] for row in pairs} == {"fdr"}
    assert {row["decision"] for row in pairs} == {"explored", "open"}
    explored = next(row for row in pairs if row["decision"] == "explored")
    assert "explored, not claimed (false discovery rate " in sentence(explored)


def test_the_claim_for_one_model_names_it() -> None:
    arms = arms_of(("clinical",), ("16",), ("standard", "reasoning"))
    rows = verdicts(arms, 120, np.random.default_rng([11, 2]), better=0.385)
    row = pooled(compared(arms, rows, 200, 200)[1], "prompt", model="model")
    assert row["decision"] == "higher"
    assert "score on tier 1 of model: higher by " in sentence(row)


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
        found.append(spread[0].value ** 2)
        held.append(spread[0].low <= deviation + 1e-12 <= spread[0].high + 1e-9)
        next_held.append(spread[1].low <= true[8] <= spread[1].high)
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
    row = pooled(compared(arms, rows, 200, 200)[1], "selector")
    middle = (row["differing_low_90"] + row["differing_high_90"]) / 2
    assert row["n_same_request"] * 2 == row["n_items"]
    assert row["differing_low_90"] < 2 * row["difference"] < row["differing_high_90"]
    assert abs(middle - 2 * row["difference"]) < 0.2 * (row["differing_high_90"] - row["differing_low_90"])


@pytest.mark.long
@pytest.mark.parametrize("models", [("model",), ("a", "b", "c")])
def test_exchangeable_arms_claim_nothing(models: tuple[str, ...]) -> None:
    arms = arms_of(("clinical", "random@1"), ("16",), ("standard", "reasoning"), models)
    false = []
    for seed in range(10):
        rows = verdicts(arms, 40, np.random.default_rng([3, seed]))
        found = claims(compared(arms, rows, resamples=150, swaps=300)[1])
        claimed = {row["factor"] for row in found} - {"tier"}  # tiers ask different questions
        assert claimed <= {"model"}, "of questions over all models"
        false.append(bool(claimed))
    assert sum(false) <= 2  # headlines of models are families of 5 % on each tier
