"""The page of a run: its numbers are those of the tables, its sentences no stronger, its text no markup."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cardiolens.score.claims.hospitals import hospitals
from cardiolens.show.page.headline_answers import answers
from page_markup import Markup, records
from page_run import finished, full_spec, reply_instead, small_spec, with_probabilities, write_record
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens.config.sweep_factors import PrimarySpec
from cardiolens.inference.engine.ask import Ask, Pictures, Reply
from cardiolens.inference.engine.readers import Reader, open_reader
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.protocol.replies import RULES_VERSION
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.run_results.run_analyses import AnalysisTable, read_judged
from cardiolens.show.notebook.case_display import Answer
from cardiolens.show.page import embed as embedding
from cardiolens.show.page.case_viewer.cases import study_cases
from cardiolens.show.page.case_viewer.item_sources import open_sources
from cardiolens.show.page.elements import Column, Estimate, Table
from cardiolens.show.page.embed import embed, to_json
from cardiolens.show.page.interval_drawings import strip
from cardiolens.show.page.page_data import Facts, read_facts
from cardiolens.show.page.page_rendering import SECTIONS, render
from cardiolens.show.page.write import write_page
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cohort(tmp_path_factory.mktemp("page"), 21)


@pytest.fixture(scope="module")
def run(root: Path) -> Run:
    return finished(full_spec(root))


@pytest.fixture(scope="module")
def page(run: Run) -> Markup:
    return Markup(write_page(run, [run]).read_text())


@pytest.mark.full
def test_every_section_is_there_and_nothing_points_off_the_machine(page: Markup) -> None:
    wanted = "asked landscape slices prompting collapse subtasks controls cohorts confidence reliability cost"
    empty = ["controls", "confidence"]  # no control was asked, and no engine gave probabilities
    shown = [name for name in wanted.split() if name not in empty]
    assert [name for name in page.ids if name in wanted.split()] == [*shown, *empty]
    assert all(re.match(r"#|viewer/|page/|data:,", address) for address in page.addresses)


def test_the_page_names_the_version_of_the_rules_that_judged_it(run: Run, page: Markup) -> None:
    assert read_judged(run)[0] == RULES_VERSION
    assert f"judged by rules {RULES_VERSION}" in " ".join(run.page.read_text().split())


def test_numbers_of_the_page_are_those_of_the_scores(run: Run, page: Markup) -> None:
    scores = tables.read(run.scores, schemas.SCORES).to_pylist()
    alone = {
        (row["arm_id"], row["scope"]): row
        for row in scores
        if row["metric"] == "primary" and row["versus_arm_id"] is None
    }
    shown = records(page.tables["subtask_scores"])
    assert len(shown) == sum(scope.startswith("subtask:") for _, scope in alone)
    drawn = sorted((row["value"], row["low"], row["high"], row["n_items"]) for row in shown)
    kept = [row for (_, scope), row in alone.items() if scope.startswith("subtask:")]
    assert drawn == sorted((row["value"], row["low"], row["high"], row["n_items"]) for row in kept)


def test_differences_of_a_factor_are_all_shown(run: Run, page: Markup) -> None:
    scores = tables.read(run.scores, schemas.SCORES).to_pylist()
    shown = records(page.tables["budget-differences"])
    differing = [
        row["value"]
        for row in scores
        if row["metric"] == "primary" and row["scope"].startswith("tier:") and row["versus_arm_id"]
        if row["versus_arm_id"].replace("-8-", "-16-").rsplit("-", 1)[0] == row["arm_id"].rsplit("-", 1)[0]
    ]
    assert differing
    assert sorted(differing) == sorted(row["value"] for row in shown)


def test_the_work_of_the_run_is_counted(run: Run, page: Markup) -> None:
    counted = {row["what"]: row["n"] for row in records(page.tables["work"])}
    manifest = json.loads(run.manifest.read_text())
    assert counted["questions asked under all arms"] == manifest["requests"]["asked"]
    endings = sum(row["n"] for row in records(page.tables["endings"]))
    assert endings == manifest["requests"]["asked"]


def test_curves_of_confidence_are_those_of_the_scores(root: Path) -> None:
    planned, _ = swept(small_spec(root, "sure"))
    write_record(planned, with_probabilities(planned, "noisy"))
    found = Markup(render(read_facts(planned.run, [planned.run])).index)
    scores = tables.read(planned.run.scores, schemas.SCORES).to_pylist()
    for table, column, metric in (
        ("calibration", "accuracy", r"calibration\.\d+\.accuracy"),
        ("calibration", "confidence", r"calibration\.\d+\.confidence"),
        ("risk_and_coverage", "risk", r"risk\.\d+"),
    ):
        shown = records(found.tables[table])
        wanted = [row["value"] for row in scores if re.fullmatch(metric, row["metric"])]
        assert len(shown) > 20
        assert sorted(row[column] for row in shown) == sorted(wanted)
    assert shown[0]["on"] == "Tier 1 · findings"
    assert {row["on"] for row in shown if row["on"].startswith("C10")} == {"C10 lv systolic"}


def facts_with(facts: Facts, **changes: Any) -> Facts:
    return replace(facts, **changes)


def test_an_answer_claims_a_difference_only_where_it_holds_among_all(run: Run) -> None:
    facts = read_facts(run, [run])
    for answer in answers(facts)[2:]:
        shown = sum(one.tone == "shown" for one in answer.estimates)
        assert answer.verdict.startswith("Yes") == (shown > 0)
        assert all(not one.low <= 0 <= one.high for one in answer.estimates if one.tone == "shown")
        equivalent = [one for one in answer.estimates if one.tone == "equivalent"]
        assert all(-2 < one.value < 2 for one in equivalent)


def test_two_models_with_one_score_cannot_be_told_apart(root: Path) -> None:
    twins = reader("oracle", "first"), reader("oracle", "second")
    run = finished(sweep_spec(root, *twins, name="twins", budget=[16], subtask=["C02", "C10"]))
    best = answers(read_facts(run, [run]))[0]
    assert best.verdict == "2 of 2 cannot be told apart"


def test_with_few_patients_nothing_is_claimed(tmp_path: Path) -> None:
    run = finished(full_spec(make_cohort(tmp_path, 1), budget=[16], subtask=["C10", "D01"]))
    page = render(read_facts(run, [run])).index
    assert "1 patient:" in page
    assert "no claim is made with fewer than 20" in " ".join(page.split())
    told = [answer.verdict for answer in answers(read_facts(run, [run]))[1:]]
    assert told == ["Not tested", "Cannot be told", "Not varied", "Cannot be told"]
    assert not re.search(r"\b1 (patients|items|subtasks|comparisons|models|arms)\b", page)
    assert "Holm" not in "".join(answer.sentence for answer in answers(read_facts(run, [run])))
    assert not re.search(r"no interval to rely on\W+p [<=]", page)
    assert "no interval is given with fewer than 8" in " ".join(page.split())


def test_a_cohort_of_few_hospitals_speaks_of_them_alone(run: Run, page: Markup) -> None:
    facts = read_facts(run, [run])
    sites = {"site": {"H1": {"p1"}, "H2": {"p2"}}}
    told = {**facts.analyses, "hospitals": AnalysisTable(hospitals(sites, 2).rows)}
    found = " ".join(render(replace(facts, analyses=told)).index.split())
    assert "The patients come from two hospitals: scores, intervals and claims speak of these" in found
    assert "The patients come from" not in " ".join(render(facts).index.split())


@pytest.mark.parametrize(
    ("answered", "begins"),
    [(0, "Declared: does"), (480, "Declared after looking: does"), (None, "Declared after looking: does")],
)
def test_a_comparison_declared_after_looking_is_called_so(
    run: Run, answered: int | None, begins: str
) -> None:
    facts = read_facts(run, [run])
    sentence = "Model a cannot be shown to change the score: p = 0.2"
    told = AnalysisTable([], (Finding(None, sentence),))
    primary = PrimarySpec(model="a", versus="b", tier=1)
    changed = replace(
        facts,
        analyses={**facts.analyses, "declared comparison": told},
        specs=(facts.specs[0].model_copy(update={"primary": primary}),),
        manifests=({**facts.manifests[0], "primary": {"answered_before": answered}},),
    )
    assert answers(changed)[0].question.startswith(begins)


class Sighted(Reader):
    """Oracle that knows nothing where it is shown no frame; with `reversed`, where it is shown one."""

    def __init__(self, planned: Plan, *, reversed_: bool) -> None:
        (model,) = planned.spec.model
        self._oracle = open_reader(model, planned.store.questions, {arm.arm_id: arm for arm in planned.arms})
        self._reversed = reversed_

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        if bool(ask.frame_keys) != self._reversed:
            return await self._oracle.answer(ask, pictures)
        return Reply(text="ANSWER: A", finish_reason="stop", prompt_tokens=1, output_tokens=1)


@pytest.mark.full
@pytest.mark.parametrize(
    ("reversed_", "verdict"), [(False, "Yes, in 4 of 4"), (True, "They lower the score in 4")]
)
def test_images_count_only_where_a_reader_needs_them(tmp_path: Path, reversed_: bool, verdict: str) -> None:
    changes = {
        "control": ["none", "blind"],
        "budget": [8, 16],
        "subtask": ["C02", "C10", "L01", "D01", "D02"],
    }
    spec = sweep_spec(make_cohort(tmp_path, 24), reader("oracle"), **changes)
    planned, judged = swept(spec, Sighted(plan(spec), reversed_=reversed_))
    write_record(planned, judged)
    images = answers(read_facts(planned.run, [planned.run]))[1]
    assert images.question == "Do the images matter?"
    assert images.verdict.startswith(verdict)
    assert len(images.estimates) == 4


def test_a_tier_with_too_few_items_in_a_cohort_part_makes_a_page(tmp_path: Path) -> None:
    changes = {"subtask": ["C10", "D01"], "statistics": {"min_n": 5, "resamples": 40, "seed": 7}}
    run = finished(full_spec(make_cohort(tmp_path, 6), budget=[16], **changes))
    rows = [row for told in read_facts(run, [run]).analyses.values() for row in told.rows]
    assert any(row.get("metric") == "primary" and math.isnan(row["value"]) for row in rows)
    assert "<html" in render(read_facts(run, [run])).index


def test_without_a_headline_the_page_says_what_to_add(root: Path) -> None:
    run = finished(sweep_spec(root, reader("uniform", seed=1), name="few", budget=[4, 8], subtask=["C02"]))
    facts = read_facts(run, [run])
    wanted = "this run has none with an answer that was judged. Run it again with budget=[4,8,16]."
    assert answers(facts)[0].sentence == (
        f"A headline is of arms with budget=16, prompt=standard, control=none, wording=0; {wanted}"
    )
    assert wanted in " ".join(render(facts).index.partition('id="landscape"')[2].split())


def test_a_section_with_nothing_to_show_is_a_line_at_the_end(root: Path) -> None:
    run = finished(sweep_spec(root, reader("uniform", seed=1), name="line", subtask=["C02"]))
    page = render(read_facts(run, [run])).index
    assert '<section id="prompting"' not in page
    assert 'href="#prompting"' not in page
    rest = page.partition('<section id="not-in-this-run"')[2]
    assert "<strong>Prompting.</strong> Only one prompt has judged answers in this run." in rest


def test_one_arm_and_one_subtask_make_a_page(root: Path) -> None:
    run = finished(sweep_spec(root, reader("uniform", seed=1), name="one", subtask=["C02"]))
    page = render(read_facts(run, [run])).index
    assert page.count("Not varied") == 3
    assert "Only one prompt has judged answers" in page
    assert "has no control arm" in page
    assert "No subtask with one right option was judged" in page


@pytest.mark.full
@pytest.mark.parametrize("said", ["", "I cannot say.", None])
def test_a_model_that_says_nothing_makes_a_page_that_says_so(root: Path, said: str | None) -> None:
    name = {"": "empty", "I cannot say.": "refusing", None: "silent"}[said]
    planned, _ = swept(small_spec(root, name))
    judged = reply_instead(planned, "collapse", said)
    write_record(planned, judged)
    found = Markup(render(read_facts(planned.run, [planned.run])).index)
    ended = {row["ending"] for row in records(found.tables["endings_by_arm"]) if row["model"] == "collapse*"}
    assert ended == {"not run" if said is None else "refused" if said else "not readable"}


def test_headline_scores_that_are_undefined_make_a_page(root: Path) -> None:
    planned, judged = swept(small_spec(root, "few", statistics={"min_n": 1000, "resamples": 40, "seed": 7}))
    write_record(planned, judged)
    facts = read_facts(planned.run, [planned.run])
    assert any("full versus" in name and told.rows for name, told in facts.analyses.items())
    assert "undefined" in render(facts).index


def test_undefined_numbers_are_null_and_never_nan() -> None:
    column = Column("value", "value", "score")
    table = Table("t", "T", (column,), [(float("nan"),), (float("inf"),), (None,), (1.25,)])
    assert json.loads(embed(table).json)["rows"] == [[None], [None], [None], [1.25]]


def test_text_cannot_leave_its_script_nor_become_markup(root: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    assert "<" not in to_json({"text": evil})
    run = finished(small_spec(root, "evil"))
    facts = read_facts(run, [run])
    arms = tuple(type(arm)(**{**_fields(arm), "model": evil}) for arm in facts.arms)
    page = render(facts_with(facts, arms=arms, name=evil)).index
    assert "<img" not in page
    assert "&lt;/script&gt;&lt;img" in page


def _fields(arm: Any) -> dict[str, Any]:
    return {name: getattr(arm, name) for name in type(arm).__slots__}


def test_no_path_and_no_patient_is_on_the_page(root: Path, run: Run, page: Markup) -> None:
    text = write_page(run, [run]).read_text() + "".join(
        path.read_text() for path in (run.root / "page").glob("*")
    )
    assert str(root) not in text
    assert "PH-0001" not in text


def test_large_tables_stand_beside_the_page(run: Run) -> None:
    rows = [("word" * 20, number) for number in range(4000)]
    large = embed(Table("large", "L", (Column("a", "a"), Column("b", "b", "count")), rows))
    assert large.chunk == "page/large.js"
    assert large.script.startswith('cardiolens.receive("large",{')
    words, numbers = json.loads(large.json)["cells"]
    assert [words["values"][at] for at in words["at"]] == [word for word, _ in rows]
    assert numbers == {"values": [number for _, number in rows]}
    assert len(words["values"]) == 1


def test_equal_cells_of_different_kinds_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "CHUNK_BYTES", 10)
    column = json.loads(embed(Table("t", "T", (Column("a", "a"),), [(1,), (True,), (1.0,)] * 9)).json)[
        "cells"
    ][0]
    shown = [column["values"][at] for at in column["at"]]
    assert [type(cell) for cell in shown] == [int, bool, float] * 9


def test_a_drawing_holds_every_end_of_its_intervals() -> None:
    estimates = (Estimate("a", 1.0, -3.0, 5.0), Estimate("b", float("nan"), 0, 0), Estimate("c", 7, 7, 7))
    drawn = strip(Answer("x", "?", "", "", estimates))
    assert drawn is not None
    assert drawn.ends == ("−10", "0", "+10 points")
    marks = [row.mark for row in drawn.rows if row.mark]
    assert [(mark.low, mark.at, mark.high) for mark in marks] == [(70, 110, 150), (170, 170, 170)]
    assert drawn.band == (80, 120)
    assert strip(Answer("x", "?", "", "")) is None


def test_the_viewer_has_the_frames_of_every_request_in_their_order(root: Path) -> None:
    run = finished(small_spec(root, "frames"))  # half of them blind
    asked = {
        (row["arm_id"], row["qa_id"]): [[frame["volume_id"], frame["idx"]] for frame in row["frames"] or []]
        for model in ("noisy", "collapse")
        for row in tables.read(
            run.requests(model), schemas.REQUESTS, ("arm_id", "qa_id", "frames")
        ).to_pylist()
    }
    sources = open_sources(run, [run])
    places = {qa_id: at for at, qa_id in enumerate(sources.questions["qa_id"].to_pylist())}
    wanted = [(places[qa_id], sources.arms.index(arm)) for arm, qa_id in asked]
    shown = {
        (sources.arms[arm], qa_id): cases["frames"][case["frames"]]
        for _, cases in study_cases(sources, wanted, private=False)
        for qa_id, arms in cases["cases"].items()
        for arm, case in arms.items()
    }
    assert shown == asked
    assert {len(frames) for frames in shown.values()} >= {0, 16}


def test_sections_are_pure(run: Run) -> None:
    facts = read_facts(run, [run])
    first, second = ([make(facts) for make in SECTIONS] for _ in range(2))
    assert repr(first) == repr(second), "as text: an end that is NaN is not equal to itself"
