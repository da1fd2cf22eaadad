"""The end of a sweep on the terminal: the page's answers in its words, no cell cut, no line too wide."""

import dataclasses
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.show.page.cards import NOT_ASKED, cards
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.page_rendering import render
from cardiolens.show.terminal.ending import ending
from cardiolens.storage.schemas import COMPARISONS, SCORES
from cardiolens.storage.tables import from_rows

WIDTHS = (80, 100, 140)
LONG = "qwen3_vl_235b_a22b_fp8"


@pytest.fixture(scope="module")
def small(simulated: Facts) -> Facts:
    """Facts of two simulated readers of which nothing was asked."""
    (spec,) = simulated.specs
    asks = spec.model_copy(update={"statistics": spec.statistics.model_copy(update={"min_n": 5})})
    nothing = {"scores": SCORES.empty_table(), "comparisons": COMPARISONS.empty_table(), "analyses": {}}
    return dataclasses.replace(simulated, specs=(asks,), arms=(), usage=(), n_patients=3, **nothing)


def row(arm: str, tier: int, value: float, **changes: Any) -> dict[str, Any]:
    """A score that fills its cell: 100.0 [100, 100] is the widest."""
    counts = {"n_items": 200, "n_patients": 200, "n_parse_error": 0, "n_refusal": 0}
    base = {
        "arm_id": arm,
        "scope": f"tier:{tier}",
        "metric": "primary",
        "value": value,
        "method": "bootstrap",
    }
    return base | {"low": value, "high": value} | counts | changes


def of_models(small: Facts, models: int, **changes: Any) -> Facts:
    """Facts of models x 8 arms with headlines, the longest name first; with the simulated readers."""
    names = [LONG, *(f"model_{number:02d}" for number in range(1, models)), *sorted(small.simulated)]
    selectors, prompts = ("clinical", "random@1"), ("standard", "reasoning")
    arms = [
        ArmFactors(f"{name}-{selector}-{budget}-{prompt}", name, selector, budget, prompt)
        for name in names
        for selector in selectors
        for budget in ("8", "16")
        for prompt in prompts
    ]
    rows = [row(f"headline:{name}", tier, 100.0, **changes) for name in names for tier in (1, 2, 3)]
    rows += [row(arm.arm_id, tier, 50.0, **changes) for arm in arms for tier in (1, 2, 3)]
    return dataclasses.replace(small, arms=tuple(arms), scores=from_rows(rows, SCORES), analyses={})


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("models", [1, 6, 24])
def test_no_line_is_wider_than_the_terminal_and_no_cell_is_cut(small: Facts, models: int, width: int) -> None:
    facts = of_models(small, models)
    lines = ending(facts, width)
    assert max(map(len, lines)) <= width
    (title,) = [number for number, line in enumerate(lines) if line.startswith("model ")]
    table = lines[title + 1 : title + 1 + models]
    for model, line in zip([LONG, *(f"model_{n:02d}" for n in range(1, models))], table, strict=True):
        assert line.split(maxsplit=1)[0] == model
        assert line.count("100.0 [100, 100]") == 3
    assert "..." not in "".join(lines)
    assert "\N{HORIZONTAL ELLIPSIS}" not in "".join(lines)


def test_a_name_is_folded_and_no_score_cut_where_both_are_too_wide(small: Facts) -> None:
    lines = ending(of_models(small, 1), 62)
    assert max(map(len, lines)) <= 62
    (row,) = [line for line in lines if line.count("100.0 [100, 100]") == 3]
    assert LONG.startswith(row.split()[0])


def test_models_are_sorted_by_their_score_on_the_first_tier(small: Facts) -> None:
    facts = of_models(small, 2)
    rows = facts.scores.to_pylist()
    for entry in rows:
        if entry["arm_id"] == f"headline:{LONG}" and entry["scope"] == "tier:1":
            entry["value"] = 40.0
    lines = ending(dataclasses.replace(facts, scores=from_rows(rows, SCORES)), 100)
    first = [line.split()[0] for line in lines if line.startswith(("model_01 ", f"{LONG} "))]
    assert first == ["model_01", LONG]


def test_a_sweep_of_192_arms_ends_on_one_screen(small: Facts) -> None:
    assert len(of_models(small, 24).arms) > 192
    assert len(ending(of_models(small, 24), 80)) < 60


def test_the_answers_are_those_of_the_page_word_by_word(small: Facts) -> None:
    facts = of_models(small, 6)
    text = " ".join(" ".join(ending(facts, 80)).split())
    page = " ".join(render(facts).index.split())
    asked = [card for card in cards(facts) if card.verdict not in NOT_ASKED]
    for answer in asked[:5]:
        assert f"{answer.question} {answer.verdict} {answer.sentence}" in text
        assert answer.verdict in page
    assert "Not varied" not in text


@pytest.mark.parametrize(("models", "more"), [(6, ""), (9, ""), (24, " and 16 more")])
def test_models_that_are_not_shown_to_be_lower_are_named_or_counted(
    small: Facts, models: int, more: str
) -> None:
    best = cards(of_models(small, models))[0]
    assert best.verdict == f"{LONG}, 100.0 %"
    assert best.sentence.endswith(f"{more}.")
    named = [f"model_{number:02d}" for number in range(1, models)]
    if not more:
        assert all(name in best.sentence for name in named)
    else:
        assert sum(name in best.sentence for name in named) + 16 == len(named)


def test_simulated_readers_stand_in_a_line_of_their_own(small: Facts) -> None:
    lines = ending(of_models(small, 2), 100)
    (line,) = [line for line in lines if line.startswith("Simulated readers, which test the software: ")]
    assert "noisy 100.0, 100.0, 100.0" in line
    assert not any(line.startswith("noisy") for line in lines)
    facts = of_models(small, 1)
    arms = tuple(arm for arm in facts.arms if arm.model in small.simulated)
    kept = pc.is_in(facts.scores["arm_id"], pa.array([arm.arm_id for arm in arms]))
    only = ending(dataclasses.replace(facts, arms=arms, scores=facts.scores.filter(kept)), 100)
    assert "Simulated readers only: these numbers test the software, not a model." in only


@pytest.mark.parametrize(("patients", "has_interval"), [(3, False), (8, False), (19, False), (20, True)])
def test_no_interval_is_printed_that_the_page_calls_none_to_rely_on(
    small: Facts, patients: int, has_interval: bool
) -> None:
    facts = of_models(small, 2, n_patients=patients)
    text = "\n".join(ending(facts, 100))
    assert ("[100, 100]" in text) == has_interval
    assert ("no interval to rely on" in text) == (not has_interval)


def test_replies_that_were_not_read_and_cells_that_lack_items_are_named(small: Facts) -> None:
    facts = of_models(small, 1, n_parse_error=100, percent_judged=97.0)
    text = " ".join(ending(facts, 100))
    assert f"{LONG} 50 % on tier 1, {LONG} 50 % on tier 2" in text
    assert f"Incomplete: {LONG} on tier 1" in text


def test_without_a_headline_few_arms_are_listed_by_what_differs(small: Facts) -> None:
    facts = of_models(small, 1)
    arms = tuple(arm for arm in facts.arms if arm.model == LONG)
    rows = [row(arm.arm_id, 1, math.nan if arm.budget == "8" else 40.0) for arm in arms]
    few = dataclasses.replace(facts, arms=arms, scores=from_rows(rows, SCORES))
    for width in WIDTHS:
        lines = ending(few, width)
        assert max(map(len, lines)) <= width
        (line,) = [line for line in lines if line.startswith(f"{LONG} random@1 budget 16 reasoning")]
        assert line.endswith("40.0 [40, 40]")


def test_three_patients_are_told_which_setting_leaves_them_without_a_score(small: Facts) -> None:
    facts = of_models(small, 1)
    none = {"n_items": 0, "n_patients": 0, "low": math.nan, "high": math.nan}
    rows = [row(arm.arm_id, 1, math.nan, **none) for arm in facts.arms]
    rows += [row(arm.arm_id, 1, 50.0, n_items=3, scope="subtask:C02") for arm in facts.arms]
    three = dataclasses.replace(facts, scores=from_rows(rows, SCORES))
    reason = "No score on tier 1: no subtask has statistics.min_n=5 items; the largest, C02, has 3."
    assert reason in " ".join(" ".join(ending(three, 80)).split())
    assert reason in " ".join(render(three).index.split())
    assert cards(three)[0].verdict == "No headline score"
