"""The page of a run: its numbers are those of the tables, its sentences no stronger, its text no markup."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from page_markup import Markup, records
from page_run import finished, full_spec, reply_instead, small_spec, with_probabilities, write_record
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens.inference.plan.frame_views import BLANK
from cardiolens.inference.plan.planner import ESTIMATED
from cardiolens.protocol.replies.strict_reading import Rule
from cardiolens.score.claims.descriptions import hospital_rows
from cardiolens.score.verdicts.case_verdict import ParseStatus
from cardiolens.show.page.case_viewer.cases import question_cases
from cardiolens.show.page.case_viewer.item_sources import open_sources
from cardiolens.show.page.elements import Column, Table
from cardiolens.show.page.embed import embed, to_json
from cardiolens.show.page.page_data import read_facts, read_header, usage_of
from cardiolens.show.page.page_rendering import asset, render
from cardiolens.show.page.write import write_page
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run

PATIENTS = 21


@pytest.fixture(scope="module")
def run(root: Path) -> Run:
    return finished(full_spec(root))


@pytest.fixture(scope="module")
def page(run: Run) -> Markup:
    return Markup(write_page(run, [run]).read_text())


@pytest.mark.full
def test_every_section_is_there_and_nothing_points_off_the_machine(page: Markup) -> None:
    shown = ["landscape", "explored", "subtasks", "collapse", "dependence", "asked"]
    # readers answer no question over models, gave no probabilities, and no number was asked
    empty = ["questions", "confidence"]
    assert [name for name in page.ids if name in (*shown, *empty)] == shown
    assert all(re.match(r"#|viewer/|page/|data:,", address) for address in page.addresses)


def test_numbers_of_the_page_are_those_of_the_scores(run: Run, page: Markup) -> None:
    scores = tables.read(run.scores, schemas.SCORES).to_pylist()
    alone = {(row["arm_id"], row["scope"]): row for row in scores if row["metric"] == "primary"}
    shown = records(page.tables["subtask_scores"])
    assert len(shown) == sum(scope.startswith("subtask:") for _, scope in alone)
    drawn = sorted((row["value"], row["low"], row["high"], row["n_items"]) for row in shown)
    kept = [row for (_, scope), row in alone.items() if scope.startswith("subtask:")]
    assert drawn == sorted((row["value"], row["low"], row["high"], row["n_items"]) for row in kept)


def test_pairs_of_arms_are_all_shown(run: Run, page: Markup) -> None:
    compared = tables.read(run.comparisons, schemas.COMPARISONS).to_pylist()
    shown = records(page.tables["pairs"])
    for factor in ("selector", "budget", "prompt"):
        pairs = [row["difference"] for row in compared if row["arm_id"] and row["factor"] == factor]
        assert pairs
        assert sorted(pairs) == sorted(row["difference"] for row in shown if row["factor"] == factor)


def test_the_questions_of_the_run_are_counted(run: Run, page: Markup) -> None:
    manifest = json.loads(run.manifest.read_text())
    asked = sum(row["asked"] for row in records(page.tables["models"]))
    assert sorted(row["model"] for row in records(page.tables["readings_by_model"])) == [
        "collapse*",
        "noisy*",
    ]
    once, twice = (usage_of(read_header(run, [run] * times)) for times in (1, 2))
    assert once == twice, "arms that two joined runs share are asked once"
    rows = records(page.tables["endings_by_arm"])
    assert asked == sum(row["n"] for row in rows) == manifest["requests"]["asked"]
    assert sum(row["share"] for row in rows) == pytest.approx(100 * len(manifest["arms"]))


def test_a_simulated_reader_has_its_asterisk_in_every_table(page: Markup) -> None:
    rows = [row for name in page.tables for row in records(page.tables[name]) if name != "models"]
    named = {row[name] for row in rows for name in ("model", "line") if row.get(name)}
    assert {"noisy*", "collapse*"} <= named
    assert not {"noisy", "collapse"} & named


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


def test_with_few_patients_nothing_is_claimed(tmp_path: Path) -> None:
    run = finished(full_spec(make_cohort(tmp_path, 1), budget=[16], subtask=["C10", "D01"]))
    page = render(read_facts(run, [run])).index
    assert "1 patient:" in page
    words = "with fewer than 20 this page claims nothing, and no interval in it is one to rely on"
    assert words in " ".join(page.split())
    assert not re.search(r"\b1 (patients|items|subtasks|comparisons|models|arms)\b", page)
    compared = tables.read(run.comparisons, schemas.COMPARISONS).to_pylist()
    assert {row["decision"] for row in compared} == {"open"}


def test_a_cohort_of_few_hospitals_speaks_of_them_alone(run: Run, page: Markup) -> None:
    facts = read_facts(run, [run])
    sites = {"site": {"H1": {"p1"}, "H2": {"p2"}}}
    told = {**facts.analyses, "hospitals": hospital_rows(sites, 2)}
    found = " ".join(render(replace(facts, analyses=told)).index.split())
    assert "The patients come from two hospitals: scores, intervals and claims speak of these" in found
    assert "The patients come from" not in " ".join(render(facts).index.split())


def test_without_a_headline_the_page_says_what_to_add(root: Path) -> None:
    run = finished(sweep_spec(root, reader("uniform", seed=1), name="few", budget=[4, 8], subtask=["C02"]))
    facts = read_facts(run, [run])
    wanted = "this run has none with an answer that was judged. Run it again with budget=[4,8,16]."
    assert wanted in " ".join(render(facts).index.partition('id="landscape"')[2].split())


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
    assert any(row["factor"] == "cohort" for row in facts.findings)
    assert "undefined" in render(facts).index


def test_undefined_numbers_are_null_and_never_nan() -> None:
    values = [float("nan"), float("inf"), None, 1.25]
    table = Table.of("gold_shifts", [{"value": value} for value in values])
    assert [row[-1] for row in json.loads(embed(table).json)["rows"]] == [None, None, None, 1.25]


def test_text_cannot_leave_its_script_nor_become_markup(root: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    assert "<" not in to_json({"text": evil})
    run = finished(small_spec(root, "evil"))
    facts = read_facts(run, [run])
    arms = tuple(replace(arm, model=evil) for arm in facts.arms)
    page = render(replace(facts, arms=arms, name=evil)).index
    assert "<img" not in page
    assert "&lt;/script&gt;&lt;img" in page


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
        for _, cases in question_cases(sources, wanted, private=False)
        for qa_id, arms in cases["cases"].items()
        for arm, case in arms.items()
    }
    assert shown == asked
    assert {len(frames) for frames in shown.values()} >= {0, 16}


RULES = {*get_args(Rule), "whole_reply"}


def keys_of(name: str) -> set[str]:
    """The codes that a table of `words.js` has."""
    table = re.search(rf"const {name} = {{(.*?)^}};", asset("words.js"), re.M | re.S)
    assert table
    return set(re.findall(r"^  (\w+):", table[1], re.M))


@pytest.mark.parametrize(
    ("table", "codes"),
    [
        ("RULE_WORDS", RULES),
        ("ENDING_WORDS", set(get_args(ParseStatus))),
        ("FLAG_WORDS", {BLANK, ESTIMATED, "short", "degraded", "no_temporal_evidence"}),
    ],
)
def test_each_code_has_words(table: str, codes: set[str]) -> None:
    assert codes <= keys_of(table)
