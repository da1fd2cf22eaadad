"""The cards of the first screen with their drawings, and the section of questions, of models."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort

from bench.claims import arms_of, verdicts
from cardiolens.config.dataset import PhantomSpec
from cardiolens.config.sweep_factors import PrimarySpec
from cardiolens.score.claims.declared import declared_row
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.hypothesis_tests import MARGIN
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.show.page.cards import cards
from cardiolens.show.page.elements import Card, Estimate
from cardiolens.show.page.page_data import Facts, Header, read_facts
from cardiolens.show.page.page_rendering import WIDTH, render, strip, templates
from cardiolens.show.page.sections.page_sections import section_of
from cardiolens.storage.schemas import COMPARISONS, VERDICTS
from cardiolens.storage.tables import from_rows


def of_arms(simulated: Facts, arms: list[ArmFactors], rows: list[dict[str, Any]]) -> Facts:
    """Facts of a run of models, with scores and comparisons that the product makes."""
    scores, comparisons = score(from_rows(rows, VERDICTS), arms, Settings(5, 200, 1, swaps=200))
    found = replace(simulated, arms=tuple(arms), scores=scores, comparisons=comparisons, analyses={})
    found.__dict__.pop("findings", None)
    return found


def of_models(simulated: Facts, models: list[str]) -> Facts:
    """Facts of a run in which the second prompt is better, for each of some models."""
    arms = arms_of(("clinical", "random@1"), ("16",), ("standard", "reasoning"), models)
    return of_arms(simulated, arms, verdicts(arms, 60, np.random.default_rng([31, 1]), better=0.8))


@pytest.fixture(scope="module")
def facts(simulated: Facts) -> Facts:
    return of_models(simulated, ["a", "b", "c"])


def by_name(facts: Facts) -> dict[str, Card]:
    return {card.name: card for card in cards(facts)}


def test_the_first_screen_says_the_result_first_and_then_whether_it_is_claimed(facts: Facts) -> None:
    prompt = by_name(facts)["prompt"]
    assert prompt.verdict.startswith("Reasoning prompt − standard on tier 1: higher by ")
    assert prompt.verdict.endswith(", claimed, the largest of 2")
    assert prompt.sentence.startswith("Over 3 models. Reasoning prompt − standard on tier 1: higher by ")
    assert prompt.sentence.index("95 % CI") < prompt.sentence.index("claimed")
    assert [estimate.tone for estimate in prompt.estimates] == ["claimed", "claimed"]
    selection = by_name(facts)["selector"]
    assert selection.verdict.endswith("not claimed")
    assert by_name(facts)["budget"].verdict == "Not varied"
    assert by_name(facts)["images"].verdict == "Not tested"


def test_a_claim_holds_among_all_and_an_equivalence_lies_within_the_margin(facts: Facts) -> None:
    estimates = [one for card in cards(facts) if card.differences for one in card.estimates]
    assert all(not one.low <= 0 <= one.high for one in estimates if one.tone == "claimed")
    assert all(-2 < one.value < 2 for one in estimates if one.tone == "equivalent")


def test_caution_and_collapse_are_answered_where_models_were_asked(facts: Facts) -> None:
    found = by_name(facts)
    assert found["caution-reasoning"].question == "Does prompt reasoning make models more cautious?"
    assert (found["caution-reasoning"].unit, found["caution-reasoning"].has_band) == ("z", False)
    assert found["collapse"].sentence.startswith(
        "Over 3 models. Spread of the truth − of answers on tier 1: "
    )
    assert "corrected for guessing" in found["tiers"].sentence


def test_caution_is_asked_of_tier_1_alone(facts: Facts) -> None:
    both = replace(facts)
    both.__dict__["findings"] = facts.findings + [
        row | {"tier": 3} for row in facts.findings if row["metric"] in ("criterion", "entropy_deficit")
    ]
    for name in ("caution-reasoning", "collapse"):
        (card,) = [card for card in cards(both) if card.name == name]
        assert {one.label.rpartition(", ")[2] for one in card.estimates} == {"tier 1"}


def test_the_highest_model_is_named_with_those_that_are_not_shown_to_be_lower(facts: Facts) -> None:
    best = by_name(facts)["model"]
    first, *others = [one.label for one in best.estimates]
    assert best.verdict.startswith(f"{first}, ")
    lower = [
        row for row in facts.findings if row["factor"] == "model" and row["decision"] in ("higher", "lower")
    ]
    assert not lower
    (constant,) = (
        row["value"]
        for row in facts.scores_of(["primary.constant"], "tier:1")
        if row["arm_id"].endswith(first)
    )
    assert f"The best constant answer scores {constant:.1f} %." in best.sentence
    assert best.sentence.endswith(f"Not shown to be lower: {', '.join(others)}.")


def test_images_count_where_answers_need_them(simulated: Facts) -> None:
    arms = [ArmFactors(f"a-{one}", "a", "clinical", "16", "standard", one) for one in ("none", "blind")]
    rows = verdicts(arms, 60, np.random.default_rng(3))
    blind = [row if row["arm_id"] == "a-none" else row | {"parsed": ["A"]} for row in rows]
    seeing = [row if row["arm_id"] == "a-blind" else row | {"parsed": row["gold"]} for row in blind]
    card = by_name(of_arms(simulated, arms, seeing))["images"]
    assert card.verdict.startswith("With images − without on tier 3: higher by ")
    assert ", claimed" in card.verdict
    assert "With images − without on tier 1: higher by " in card.sentence


def test_what_is_equivalent_is_named_and_what_is_open_is_counted(facts: Facts) -> None:
    card = by_name(facts)["selector"]
    assert card.sentence.count("not claimed (") == 1
    assert card.sentence.endswith(" 1 further comparison, not claimed.")
    alike = replace(facts)
    alike.__dict__["findings"] = [
        row | {"margin": "within"} if (row["factor"], row["tier"]) == ("selector", 1) else row
        for row in facts.findings
    ]
    words, equivalent = by_name(alike)["selector"].sentence.split(" Equivalent within 2 points: ")
    assert " on tier 3: " in words
    assert equivalent == "random selection − clinical on tier 1."


def test_every_model_stands_below_the_mean_of_all(facts: Facts) -> None:
    (table,) = section_of(facts, "questions").tables
    shown = list(table.records())
    of_prompt = [
        row
        for row in shown
        if row["comparison"] == "reasoning prompt − standard"
        and str(row["scope"]).startswith("Tier 1")
        and row["metric"] == "score"
    ]
    assert [row["line"] for row in of_prompt] == ["all models", "a", "b", "c"]
    values = [float(str(row["difference"])) for row in of_prompt]
    assert np.mean(values[1:]) == pytest.approx(values[0])
    assert {row["reading"] for row in of_prompt} == {"difference claimed"}
    assert float(str(of_prompt[0]["p_adjusted"])) < 0.05


def test_one_model_stands_alone(simulated: Facts) -> None:
    facts = of_models(simulated, ["a"])
    assert by_name(facts)["prompt"].sentence.startswith("One model. ")
    (table,) = section_of(facts, "questions").tables
    lines = [(row["line"], row["comparison"], row["scope"], row["metric"]) for row in table.records()]
    assert len(lines) == len(set(lines)) > 0, "no row stands twice"
    assert {line for line, *_ in lines} == {"a"}


def test_ranks_of_models_on_tiers_1_and_3_stand_under_the_landscape(facts: Facts) -> None:
    (note,) = section_of(facts, "landscape").notes
    assert note.startswith("Ranks of models on tiers 1 and 3: Kendall's tau ")
    assert " over 3 models (p = " in note


def test_a_run_of_simulated_readers_answers_no_question_over_models(simulated: Facts) -> None:
    assert not section_of(simulated, "questions").tables
    (card,) = cards(simulated)
    assert (card.verdict, card.sentence.startswith("Simulated readers only")) == ("No model", True)


def declared_card(facts: Facts, answered: int, **changes: Any) -> Card:
    primary = PrimarySpec(model="a", versus="b", tier=1)
    row = declared_row(primary, answered, facts.findings)
    assert row is not None
    changed = replace(
        facts,
        comparisons=from_rows([*facts.findings, row | changes], COMPARISONS),
        specs=(facts.specs[0].model_copy(update={"primary": primary}),),
        manifests=({**facts.manifests[0], "primary": {"answered_before": answered}},),
    )
    return by_name(changed)["declared"]


@pytest.mark.parametrize(("answered", "begins"), [(0, "Declared before the run"), (480, "Declared after")])
def test_a_comparison_declared_after_looking_is_called_so(facts: Facts, answered: int, begins: str) -> None:
    card = declared_card(facts, answered)
    assert card.question.startswith(begins)
    assert ("declared before the run and tested alone" in card.sentence) == (answered == 0)


def test_a_declared_equivalence_is_of_its_tier_and_has_its_numbers(facts: Facts) -> None:
    card = declared_card(facts, 0, margin="within", decision="open", within_p_adjusted=0.01)
    assert card.verdict == "Within 2 points on tier 1, claimed"
    words = "equivalent within 2 points (p = 0.01, declared before the run and tested alone)."
    assert "60 patients" in card.sentence
    assert card.sentence.endswith(words)


def test_a_synthetic_cohort_and_a_reader_of_its_kind_are_called_so(simulated: Facts) -> None:
    (spec,) = simulated.specs
    assert "synthetic" not in render(simulated).index
    packaged = spec.model[0].model_copy(update={"name": "small", "source": "packaged/reader_small"})
    dataset = spec.dataset.model_copy(update={"phantom": PhantomSpec(canonical=("PH-NORMAL",), size="ci")})
    of_phantoms = spec.model_copy(update={"dataset": dataset, "model": [packaged]})
    words = " ".join(render(replace(simulated, specs=(of_phantoms,))).index.split())
    assert "A synthetic cohort: phantoms that this software draws. No score here says" in words
    assert "small was trained on phantoms of the same kind; with options in another order" in words


def drawn_card(answer: Card) -> str:
    module = templates().get_template("parts.html").module
    return str(module.answer_card(answer, strip(answer), WIDTH, MARGIN))  # type: ignore[attr-defined]


def test_few_estimates_have_a_row_with_a_label_each() -> None:
    estimates = tuple(Estimate(f"tier {number}", number, number - 1, number + 1) for number in range(1, 4))
    drawn = strip(Card("x", "?", "", "", estimates))
    assert drawn is not None
    assert [row.label for row in drawn.rows] == ["tier 1", "tier 2", "tier 3"]
    text = drawn_card(Card("x", "?", "", "", estimates))
    assert all(f'<span class="name">{row.label}</span>' in text for row in drawn.rows)


def test_of_many_estimates_the_largest_are_drawn_and_the_rest_is_counted() -> None:
    estimates = [Estimate(str(number), number / 10, -1, 9) for number in range(40)]
    drawn = strip(Card("x", "?", "", "", tuple(estimates)))
    assert drawn is not None
    assert [row.label for row in drawn.rows] == [*map(str, range(28, 40))]
    text = drawn_card(Card("x", "?", "", "", tuple(estimates)))
    assert '<span class="name">and 28 smaller, in the table below</span>' in text


def test_models_stand_under_the_mean_within_the_scale() -> None:
    drawn = strip(Card("x", "?", "", "", (Estimate("all", 1.0, 0.0, 2.0, models=(-12.0, 3.0)),)))
    assert drawn is not None
    assert drawn.words[2] == "+15 points"
    assert [drawn.x(value) for value in drawn.rows[0].models] == [20.0, 120.0]


def test_a_criterion_has_its_own_unit_and_no_band_of_points() -> None:
    answer = Card("x", "?", "", "", (Estimate("all", 0.1, -0.2, 0.7),), unit="z", has_band=False)
    drawn = strip(answer)
    assert drawn is not None
    assert (drawn.words, drawn.has_band) == (("−1", "0", "+1 z"), False)
    assert 'class="band"' not in drawn_card(answer)


def test_charts_open_on_a_model_that_sees_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"min_n": 1, "resamples": 10, "seed": 7}
    spec = small_spec(make_cohort(tmp_path, 1), "order", subtask=["D01"], statistics=few)
    run = finished(spec)
    for simulated in ("noisy", "collapse"):
        monkeypatch.setattr(Header, "simulated", property(lambda _, name=simulated: frozenset({name})))
        facts = read_facts(run, [run])
        real = "collapse" if simulated == "noisy" else "noisy"
        assert [(arm.model, arm.control) for arm in facts.arms] == [
            *((real, "none"), (real, "blind"), (simulated, "none"), (simulated, "blind"))
        ]
        for table in section_of(facts, "collapse").tables:
            first = next(table.records())["arm"]
            assert first.startswith(f"{real} ")
            assert "blind" not in first
