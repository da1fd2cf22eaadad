"""The leaderboard: numbers of the scores, unlike runs refused, and nothing of a patient in it."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from page_markup import Markup, records
from page_run import finished, reply_instead, small_spec, write_record
from small_cohort import make_cohort, reader, swept

from cardiolens.base.errors import InputError
from cardiolens.commands.compare import Board, leaderboard, main
from cardiolens.config.command_words import read_words
from cardiolens.score.run_results.scoring import judge_and_write
from cardiolens.storage import schemas, tables
from cardiolens.storage.documents import read_manifest
from cardiolens.storage.places import Run

MODELS = {
    "first": [reader("noisy", "good", error=0.1), reader("oracle")],
    "second": [reader("noisy", "poor", error=0.8)],
}
PATIENTS = 21
FEW = {"subtask": ["C02", "D01", "R-CINE"], "control": ["none"]}
TWO = FEW | {"subtask": ["C02", "D01"]}


@pytest.fixture(scope="module")
def runs(root: Path) -> list[Run]:
    return [finished(small_spec(root, name, model=models, **FEW)) for name, models in MODELS.items()]


def written(out: Path, *runs: Run, **words: str) -> tuple[int, str]:
    """The exit code and the page of a leaderboard."""
    named = [f"runs=[{','.join(str(run.root) for run in runs)}]", f"out={out}"]
    code = leaderboard(read_words(Board, [*named, *(f"{name}={value}" for name, value in words.items())]))
    return code, out.read_text()


@pytest.fixture(scope="module")
def page(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> str:
    code, text = written(tmp_path_factory.mktemp("page") / "board.html", *runs)
    assert code == 0
    return text


def rows_of(page: str, table: str = "standings") -> list[dict[str, Any]]:
    return records(Markup(page).tables[table])


@pytest.mark.full
def test_every_model_of_all_runs_is_there_with_the_numbers_of_its_scores(page: str, runs: list[Run]) -> None:
    ranked = {row["model"]: row for row in rows_of(page) if row["setting"] == "headline"}
    assert set(ranked) == {"good", "oracle", "poor"}
    assert ranked["oracle"]["tier1"] == ranked["oracle"]["tier3"] == 100.0
    arms = [row for row in rows_of(page) if row["setting"] != "headline"]
    for run in runs:
        scores = tables.read(run.scores, schemas.SCORES).to_pylist()
        wanted = {
            (row["scope"], row["value"], row["n_items"])
            for row in scores
            if row["metric"] == "primary"
            and row["scope"].startswith("tier:")
            and not row["arm_id"].startswith("headline:")
        }
        models = read_manifest(run)["models"]
        seen = {
            (f"tier:{tier}", row[f"tier{tier}"], row[f"tier{tier}_items"])
            for row in arms
            for tier in (1, 2, 3)
            if row["model"] in models
        }
        assert wanted <= seen


def test_what_is_not_told_apart_is_said(page: str) -> None:
    notes = {row["model"]: row["tier1_note"] for row in rows_of(page) if row["setting"] == "headline"}
    assert notes["oracle"] == "highest"
    assert notes["good"] in {"not shown to be lower", "lower"}
    assert notes["poor"] == "lower"


def test_protocol_rules_digests_and_versions_are_on_the_page(page: str, runs: list[Run]) -> None:
    manifest = read_manifest(runs[0])
    shared = {row["what"]: row["value"] for row in rows_of(page, "fixed")}
    assert shared["questions asked, digest"] == manifest["questions_digest"]
    assert shared["cohort, digest"] == manifest["cohort_digest"]
    assert shared["protocol"] == "openprotocol-1"
    assert shared["runs"] == ", ".join(run.root.name for run in runs)
    dates = {row["last_reply"] for row in rows_of(page)}
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\d", date) for date in dates)


def test_nothing_of_a_patient_is_on_the_page(page: str, root: Path) -> None:
    questions = [json.loads(line) for line in (root / "questions.jsonl").read_text().splitlines()]
    names = {str(question[name]) for question in questions for name in ("qa_id", "study_id", "patient_id")}
    references = [question["reference"] for question in questions if question.get("reference")]
    texts = {reference[name] for reference in references for name in ("findings", "impression")}
    assert references
    found = [secret for secret in names | texts | {str(root)} if secret in page or json.dumps(secret) in page]
    assert not found
    assert "<img" not in page
    assert "data:image" not in page
    assert not re.search(r"\b(https?|file):", page)
    assert Markup(page).addresses == ["data:,", "#main"]


def test_other_words_of_the_same_questions_are_refused(runs: list[Run], tmp_path: Path) -> None:
    other = Run(tmp_path / "other")
    shutil.copytree(runs[1].root, other.root)
    requests = tables.read(other.requests("poor"), schemas.REQUESTS)
    renamed = pa.array(["question_standard@00000000"] * requests.num_rows, pa.string())
    at = requests.schema.get_field_index("template")
    tables.replace(other.requests("poor"), requests.set_column(at, "template", renamed), schemas.REQUESTS)
    with pytest.raises(InputError, match="poor was asked C02 with template question_standard@00000000, but"):
        written(tmp_path / "board.html", runs[0], other)


def test_the_joint_judgement_of_before_is_not_shown(page: str, runs: list[Run], tmp_path: Path) -> None:
    part = tables.parts(Run(runs[0].root.parent / next(runs[0].root.parent.glob("merged-*")).name).verdicts)[
        0
    ]
    part.unlink()
    assert rows_of(written(tmp_path / "board.html", *runs)[1]) == rows_of(page)


def told(page: str) -> list[str]:
    """The warnings of a page."""
    return re.findall(r'<p class="warning" role="note">(.*?)</p>', page)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two stores of the same four patients."""
    return [make_cohort(tmp_path_factory.mktemp(name), 4) for name in ("here", "there")]


def test_runs_of_one_model_in_two_stores_lack_no_reply(small: list[Path], tmp_path: Path) -> None:
    good = MODELS["first"][:1]
    parts = [
        finished(small_spec(root, f"k{budget}", model=good, budget=[budget], **TWO))
        for root, budget in zip(small, (16, 8), strict=True)
    ]
    code, page = written(tmp_path / "board.html", *parts)
    assert code == 0
    assert not [sentence for sentence in told(page) if "no answer yet" in sentence]
    assert {(row["answered"], row["unique"]) for row in rows_of(page)} == {(2 * 8, 2 * 8)}


def test_models_of_the_same_score_are_both_the_highest(small: list[Path], tmp_path: Path) -> None:
    same = finished(small_spec(small[0], "same", model=[reader("oracle"), reader("oracle", "too")], **TWO))
    _, page = written(tmp_path / "board.html", same)
    notes = {row["tier3_note"] for row in rows_of(page) if row["setting"] == "headline"}
    assert notes == {"highest; n too small for an interval: 4"}
    assert any(
        words.startswith("4 patients: with fewer than 20 this page claims nothing") for words in told(page)
    )


def test_what_lacks_replies_is_said_of_arms_too_and_no_model_is_lost(
    small: list[Path], tmp_path: Path
) -> None:
    models = [reader("oracle"), reader("uniform"), reader("constant", answer="A")]
    planned, _ = swept(small_spec(small[1], "cut", model=models, **TWO))
    reply_instead(planned, "uniform", None)
    folder = planned.store.completions(planned.identities["constant"].model_key)
    (part,) = tables.parts(folder)
    kept = tables.read(folder, schemas.COMPLETIONS).slice(0, 3)
    part.unlink()
    tables.write_part(folder, kept, schemas.COMPLETIONS)
    keys = {name: identity.model_key for name, identity in planned.identities.items()}
    write_record(planned, judge_and_write(planned.run, planned.store, keys, planned.spec))
    code, page = written(tmp_path / "board.html", planned.run)
    assert code == 1
    assert "Not in the scores, as no reply was judged: uniform." in told(page)
    (of_arm,) = [row for row in rows_of(page) if row["model"] == "constant" and row["setting"] != "headline"]
    assert any(str(of_arm[f"tier{tier}_note"]).startswith("incomplete, ") for tier in (1, 2, 3))


def test_one_run_alone_has_a_page(runs: list[Run], tmp_path: Path) -> None:
    code, page = written(tmp_path / "board.html", runs[0])
    assert code == 0
    assert {row["model"] for row in rows_of(page)} == {"good", "oracle"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["runs=[a]", "out=x.html"], "runs=a: no such folder"),
        (["runs=[b,./c/../b]", "out=x.html"], "give each run once"),
        (["runs=[a]", "out=x.html", "margin=3"], "unknown key 'margin'"),
    ],
)
def test_words_that_cannot_be_meant_are_refused(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "bc":
        (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "argv", ["compare", *words])
    assert main() == 2
    assert message in capsys.readouterr().err
