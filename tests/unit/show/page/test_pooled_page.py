"""The page's answers to questions pooled over models: first screen and section (protocol 17.6)."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort

sys.path.insert(0, str(Path(__file__).parents[4]))
from bench.claims import arms_of, findings, verdicts
from cardiolens.config.dataset import PhantomSpec
from cardiolens.score.claims import question_analysis
from cardiolens.score.claims.landscape import landscape
from cardiolens.score.run_results.run_analyses import AnalysisTable
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.show.page.elements import Answer
from cardiolens.show.page.further_answers import further_answers
from cardiolens.show.page.headline_answers import answers
from cardiolens.show.page.page_data import Facts, read_facts
from cardiolens.show.page.page_rendering import render
from cardiolens.show.page.sections.questions_section import questions
from cardiolens.storage.schemas import SCORES
from cardiolens.storage.tables import from_rows


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    run = finished(small_spec(make_cohort(tmp_path_factory.mktemp("pooled"), 4), "pooled"))
    return read_facts(run, [run])


def of_models(simulated: Facts, models: list[str]) -> Facts:
    """Facts of a run in which the second prompt is better, for each of some models."""
    arms: list[ArmFactors] = arms_of(("clinical", "random@1"), ("16",), ("standard", "reasoning"), models)
    rows = verdicts(arms, 60, np.random.default_rng([31, 1]), better=0.8)
    scores = findings(arms, rows, resamples=200, swaps=200)[1]
    made = question_analysis.questions(scores), landscape(scores)
    analyses = {
        analysis.name: AnalysisTable(list(analysis.rows), list(analysis.findings)) for analysis in made
    }
    return replace(simulated, arms=tuple(arms), scores=from_rows(scores, SCORES), analyses=analyses)


@pytest.fixture(scope="module")
def facts(simulated: Facts) -> Facts:
    return of_models(simulated, ["a", "b", "c"])


def by_name(facts: Facts) -> dict[str, Answer]:
    return {answer.name: answer for answer in answers(facts)}


def test_the_first_screen_answers_over_all_models(facts: Facts) -> None:
    prompt = by_name(facts)["prompt"]
    assert prompt.verdict == "Yes, on tiers 1 and 3"
    assert prompt.sentence.startswith("Over 3 models, 60 patients, reasoning − standard: ")
    assert [estimate.tone for estimate in prompt.estimates] == ["shown", "shown"]
    selection = by_name(facts)["selector"]
    assert selection.verdict.startswith(("Not shown", "Cannot be told", "No, within"))
    assert by_name(facts)["budget"].verdict == "Not varied"


def test_only_what_was_tested_is_called_tested(facts: Facts) -> None:
    asked = facts.analyses[question_analysis.NAME]

    def said(n_patients: int, scope: str) -> str:
        rows = [
            {**row, "n_patients": n_patients} if row["scope"].startswith(scope) else row for row in asked.rows
        ]
        few = replace(facts, analyses={**facts.analyses, question_analysis.NAME: AnalysisTable(rows)})
        return by_name(few)["prompt"].sentence

    assert said(60, "tier:").endswith("Tested with all questions of the run (Holm).")
    assert said(4, "tier:").endswith(" Not tested.")
    assert "Holm" not in said(4, "tier:")
    partly = said(4, "tier:3")
    assert "on tier 3 (no interval to rely on, not tested)" in partly
    assert partly.endswith("(Holm).")


def test_caution_and_collapse_are_answered_where_models_were_asked(facts: Facts, simulated: Facts) -> None:
    further = {answer.name: answer for answer in further_answers(facts)}
    assert further["caution-reasoning"].question == "Does prompt reasoning make models more cautious?"
    assert "the criterion for calling an abnormality" in further["caution-reasoning"].sentence
    assert further["collapse"].verdict in ("Yes", "No", "Cannot be told")
    assert "fewer categories than the truth on tier 1 over 3 models" in further["collapse"].sentence
    assert further_answers(simulated) == []


def test_every_model_stands_below_the_mean_of_all(facts: Facts) -> None:
    (chart,) = questions(facts).figures
    names = [column.name for column in chart.table.columns]
    shown = [dict(zip(names, row, strict=True)) for row in chart.table.rows]
    tier_1 = [row for row in shown if str(row["scope"]).startswith("Tier 1")]
    of_prompt = [row for row in tier_1 if row["comparison"] == "reasoning − standard"]
    assert [row["line"] for row in of_prompt] == ["all models", "a", "b", "c"]
    assert np.mean([float(str(row["value"])) for row in of_prompt[1:]]) == pytest.approx(
        of_prompt[0]["value"]
    )
    assert {row["reading"] for row in of_prompt} == {"difference shown"}
    (of_all, *_), others = of_prompt, [row for row in shown if row["comparison"] == "random − clinical"]
    assert float(str(of_all["adjusted_p"])) < 0.05
    assert {row["reading"] for row in others} <= {"cannot be told", "within 2 points"}


def test_one_model_is_named_and_stands_alone(simulated: Facts) -> None:
    facts = of_models(simulated, ["a"])
    assert by_name(facts)["prompt"].sentence.startswith("For a, 60 patients, ")
    (chart,) = questions(facts).figures
    assert {row[2] for row in chart.table.rows} == {"a"}


def test_a_run_of_simulated_readers_has_no_question_over_models(simulated: Facts) -> None:
    assert questions(simulated).absent == "No model was asked at two levels of a factor."


def test_a_synthetic_cohort_and_a_reader_of_its_kind_are_called_so(simulated: Facts) -> None:
    (spec,) = simulated.specs
    assert "synthetic" not in render(simulated).index
    packaged = spec.model[0].model_copy(update={"name": "small", "source": "packaged/reader_small"})
    dataset = spec.dataset.model_copy(update={"phantom": PhantomSpec(canonical=("PH-NORMAL",), size="ci")})
    of_phantoms = spec.model_copy(update={"dataset": dataset, "model": [packaged]})
    words = " ".join(render(replace(simulated, specs=(of_phantoms,))).index.split())
    assert "A synthetic cohort: phantoms that this software draws. No score here says" in words
    assert "small was trained on phantoms of the same kind; with options in another order" in words
