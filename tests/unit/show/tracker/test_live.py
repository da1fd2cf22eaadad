"""How far models are, as it is kept and as W&B is told while they run."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import wandb
from page_run import finished, small_spec
from small_cohort import make_cohort

from cardiolens.inference.engine.ask import ErrorKind
from cardiolens.inference.plan.missing import WORK, Missing
from cardiolens.inference.stream.execution import Standing
from cardiolens.show.tracker import tracked_progress as watched
from cardiolens.show.tracker.tracked_progress import appender, read_rows, row_of, track, watching
from cardiolens.show.tracker.wandb_runs import WandbGroup
from cardiolens.storage import documents
from cardiolens.storage.places import Run
from tests.wandb_files import content

SAME = ("run_id", "project", "run_group", "job_type", "display_name", "host", "tags", "steps")
NOTHING = Missing(WORK.empty_table(), unique=9, done=0, exhausted=0)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = make_cohort(tmp_path_factory.mktemp("tracking"), 2)
    return finished(small_spec(root, "watched", tracker={"mode": "offline"}, control=["none"]))


@pytest.fixture
def plan(run: Run) -> Iterator[Any]:
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
    first = mirrored(plan)
    written = {path.parent for path, _ in first}
    assert track(plan.run, plan.spec.tracker)
    wandb.teardown()
    (again,) = [one for path, one in mirrored(plan) if path.parent not in written]
    rows = read_rows(plan.run.progress(plan.model))
    assert [row["requests/executed"] for row in rows] == [1, 2, 4]
    assert [len(one["steps"]) for _, one in first] == [2, 3]
    assert again["steps"] == [{**row, "_step": step} for step, row in enumerate(rows)]
    last = first[-1][1]
    assert again["logged"].items() >= {name: last["logged"][name] for name in ("model", "studies")}.items()
    assert {name: again[name] for name in SAME} == {name: last[name] for name in SAME}


def mirrored(plan: Any) -> list[tuple[Path, dict[str, Any]]]:
    """What W&B holds of the model, the shortest first."""
    found = [(path, content(path)) for path in plan.run.root.glob("wandb/offline-run-*/*.wandb")]
    of_models = [(path, one) for path, one in found if one["display_name"] == plan.model]
    return sorted(of_models, key=lambda found: len(found[1]["steps"]))


def test_a_tracker_that_fails_is_said_and_stops_nothing(
    plan: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no such project")

    monkeypatch.setattr(WandbGroup, "open", fail)
    with watching(plan) as begin:
        begin(plan.model, NOTHING)(standing(1))
    assert "no such project" in caplog.text
    assert len(read_rows(plan.run.progress(plan.model))) == 1


def test_a_tracker_that_hangs_holds_nobody_up(
    plan: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(WandbGroup, "open", lambda *_, **__: time.sleep(3600))
    monkeypatch.setattr(watched, "_PATIENCE", 0.1)
    began = time.monotonic()
    with caplog.at_level(logging.ERROR), watching(plan) as begin:
        begin(plan.model, NOTHING)(standing(1))
    assert time.monotonic() - began < 5
    assert "did not take in" in caplog.text
