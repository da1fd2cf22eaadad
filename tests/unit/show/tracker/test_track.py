"""W&B offline: what it is told while models run, and the mirror made again from the disk; nothing private."""

import logging
import re
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
import wandb
from page_run import finished, small_spec

from cardiolens.config.sweep import TrackerSpec
from cardiolens.inference.engine.ask import ErrorKind
from cardiolens.inference.plan.missing import WORK, Missing
from cardiolens.inference.stream.execution import Standing
from cardiolens.show.page.page_data import read_facts
from cardiolens.show.page.write import write_page
from cardiolens.show.tracker import tracked_progress as watched
from cardiolens.show.tracker import wandb_runs
from cardiolens.show.tracker.tracked_progress import appender, read_rows, row_of, track, watching
from cardiolens.show.tracker.wandb_runs import WandbGroup
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run
from tests.wandb_files import content, kept_tables

PATIENTS = 2
TABLES = {"cards", "arms", "scores", "comparisons", "collapse", "confusion"}


@pytest.fixture(scope="module")
def run(root: Path) -> Run:
    made = finished(small_spec(root, "mirror", tracker={"mode": "offline"}, control=["none"]))
    write_page(made, [made])
    assert track(read_facts(made, [made]), documents.read_configuration(made).tracker)
    wandb.teardown()  # as at the end of a process: waits until its service has written everything
    return made


def mirrored(run: Run) -> list[Path]:
    return sorted(run.root.glob("wandb/offline-run-*/*.wandb"))


def again(run: Run) -> list[Path]:
    """The files of W&B that are written on top of those that are there."""
    before = set(mirrored(run))
    assert track(read_facts(run, [run]), TrackerSpec())
    wandb.teardown()
    return [path for path in mirrored(run) if path not in before]


@pytest.mark.full
def test_a_mirror_made_again_says_what_the_first_said(run: Run) -> None:
    first = [content(path) for path in mirrored(run)]
    second = [content(path) for path in again(run)]
    by_id = {one["run_id"]: one for one in second}
    assert len(by_id) == len(second) == len(first) == 3
    assert by_id == {one["run_id"]: one for one in first}
    assert sorted(one["job_type"] for one in second) == ["model", "model", "sweep"]
    assert {one["run_group"] for one in second} == {run.root.name}


def rows_of(tables_of_run: dict[str, Any], name: str) -> int:
    """Rows of a shown table."""
    of_name = re.compile(rf".*/{name}_\d+_[0-9a-f]+\.table\.json")
    return sum(len(table["data"]) for path, table in tables_of_run.items() if of_name.fullmatch(path))


@pytest.mark.full
def test_every_row_is_shown_and_kept_as_it_is_stored(run: Run) -> None:
    (path,) = filter(is_sweep, again(run))
    stored = tables.read(run.scores, schemas.SCORES)
    shown, kept = content(path)["tables"], kept_tables(path)
    assert rows_of(shown, "scores") == stored.num_rows > 100
    parquet = pq.read_table(kept["scores.parquet"])
    assert parquet.schema.equals(stored.schema), "with its types"
    assert repr(parquet.to_pylist()) == repr(stored.to_pylist())
    assert {path.removesuffix(".parquet") for path in kept} == TABLES
    for name in TABLES:
        assert rows_of(shown, name) == pq.read_metadata(kept[f"{name}.parquet"]).num_rows, name


def test_a_table_that_is_too_long_to_be_shown_is_kept_whole(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wandb_runs, "SHOWN_ROWS", 50)
    (path,) = filter(is_sweep, again(run))
    assert rows_of(content(path)["tables"], "scores") == 0
    n_scores = tables.read(run.scores, schemas.SCORES).num_rows
    assert pq.read_metadata(kept_tables(path)["scores.parquet"]).num_rows == n_scores


def is_sweep(path: Path) -> bool:
    return bool(content(path)["job_type"] == "sweep")


def test_the_sweep_has_cards_page_and_a_summary_to_sort_by(run: Run) -> None:
    (path,) = [path for path in mirrored(run) if is_sweep(path)][:1]
    sweep = content(path)
    assert list(sweep["pages"].values()) == [sha256(run.page.read_bytes()).hexdigest()]
    assert rows_of(sweep["tables"], "cards") >= 1
    for one in map(content, mirrored(run)):
        own = {name for name in one["logged"] if not name.startswith((*TABLES, "page"))}
        assert {"tier_1", "tier_3", "percent_read", "items"} <= own
        assert len(own) < 36, own


def test_no_study_patient_or_question_is_in_anything_that_it_gets(run: Run) -> None:
    spec = documents.read_configuration(run)
    questions = tables.read(spec.store / "questions", schemas.QUESTIONS)
    private = {
        value
        for name in ("study_id", "patient_id", "qa_id", "question", "reference")
        for value in questions[name].to_pylist()
        if value
    }
    assert len(private) > 50
    (path, *_) = [path for path in mirrored(run) if is_sweep(path)]
    texts = [file.read_text() for file in path.parent.glob("files/media/*/*")]
    texts += [repr(pq.read_table(kept).to_pylist()) for kept in kept_tables(path).values()]
    texts += [repr(content(one)) for one in mirrored(run)]
    assert len(texts) > 10
    for value in private:
        assert not any(value in text for text in texts), value


def test_nothing_of_the_machine_is_in_a_mirror(run: Run) -> None:
    for path in mirrored(run):
        assert content(path)["host"] == "unnamed"
        assert str(run.root).encode() not in path.read_bytes()


SAME = ("run_id", "project", "run_group", "job_type", "display_name", "host", "tags", "steps")
NOTHING = Missing(WORK.empty_table(), unique=9, done=0, exhausted=0)


@pytest.fixture(scope="module")
def watched_run(root: Path) -> Run:
    return finished(small_spec(root, "watched", tracker={"mode": "offline"}, control=["none"]))


@pytest.fixture
def plan(watched_run: Run) -> Iterator[Any]:
    run = watched_run
    spec, manifest = documents.read_configuration(run), documents.read_manifest(run)
    names = (model.name for model in spec.model)
    yield SimpleNamespace(
        run=run,
        spec=spec,
        protocol=manifest["protocol"],
        study_ids=["s"] * manifest["studies"],
        model=next(names),
    )
    for path in run.root.glob("progress/*"):
        path.unlink()


def standing(ok: int, **counters: int) -> Standing:
    return Standing(unique=9, reused=1, left=8, counters={"ok": ok, **counters}, seconds=2.0)


def test_a_row_has_counters_and_what_failed_by_its_kind() -> None:
    row = row_of(standing(3, error=2, **{ErrorKind.SLOW: 2}))
    assert row["requests/done"] == 6
    assert row["requests/executed"] == 5
    assert row["requests/failed"] == row["failed/slow"] == 2
    assert row["requests_per_second"] == 2.5
    assert not any(name.startswith("tokens") for name in row)


def test_tokens_and_frames_are_told_of_models_that_have_them() -> None:
    row = row_of(standing(3, prompt_tokens=100, cached_tokens=60, output_tokens=10, frames_processed=4))
    assert row["tokens_per_second"] == 25
    assert row["frames/processed"] == 4


def test_a_line_that_a_killed_process_left_unfinished_costs_that_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "progress" / "tiny.jsonl"
    appender(path)({"time": 1.0})
    with path.open("ab") as kept:
        kept.write(b'{"time": 2.0, "requ')
    append = appender(path)
    append({"time": 3.0})
    append({"time": 4.0})
    assert [row["time"] for row in read_rows(path)] == [1, 3, 4]


def test_a_place_that_cannot_be_written_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "progress").write_text("a file where a folder should be")
    append = appender(tmp_path / "progress" / "tiny.jsonl")
    append({"time": 1.0})
    append({"time": 2.0})
    assert len([line for line in caplog.messages if "was not written" in line]) == 1


@pytest.mark.full
def test_what_was_told_while_it_ran_is_what_a_mirror_made_again_says(plan: Any) -> None:
    for told in ((1, 2), (4,)):  # the second time the run goes on
        with watching(plan) as begin:
            tell = begin(plan.model, NOTHING)
            for ok in told:
                tell(standing(ok))
    wandb.teardown()
    first = mirrored_models(plan)
    written = {path.parent for path, _ in first}
    assert track(read_facts(plan.run, [plan.run]), plan.spec.tracker)
    wandb.teardown()
    (again,) = [one for path, one in mirrored_models(plan) if path.parent not in written]
    rows = read_rows(plan.run.progress(plan.model))
    assert [row["requests/executed"] for row in rows] == [1, 2, 4]
    assert [len(one["steps"]) for _, one in first] == [2, 3]
    assert again["steps"] == [{**row, "_step": step} for step, row in enumerate(rows)]
    last = first[-1][1]
    assert again["logged"].items() >= {name: last["logged"][name] for name in ("model", "studies")}.items()
    assert {name: again[name] for name in SAME} == {name: last[name] for name in SAME}


def mirrored_models(plan: Any) -> list[tuple[Path, dict[str, Any]]]:
    """What W&B holds of the model, the shortest first."""
    found = [(path, content(path)) for path in plan.run.root.glob("wandb/offline-run-*/*.wandb")]
    of_models = [(path, one) for path, one in found if one["display_name"] == plan.model]
    return sorted(of_models, key=lambda found: len(found[1]["steps"]))


def test_a_tracker_that_fails_is_said_and_stops_nothing(
    plan: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no such project")

    monkeypatch.setattr(WandbGroup, "opened", fail)
    with watching(plan) as begin:
        begin(plan.model, NOTHING)(standing(1))
    assert "no such project" in caplog.text
    assert len(read_rows(plan.run.progress(plan.model))) == 1


def test_a_tracker_that_hangs_holds_nobody_up(
    plan: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(WandbGroup, "opened", lambda *_, **__: time.sleep(3600))
    monkeypatch.setattr(watched, "_PATIENCE", 0.1)
    began = time.monotonic()
    with caplog.at_level(logging.ERROR), watching(plan) as begin:
        begin(plan.model, NOTHING)(standing(1))
    assert time.monotonic() - began < 600
    assert "did not take in" in caplog.text
