"""The mirror in W&B, offline: made again from the disk it says the same, and nothing of the machine."""

import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import wandb
from page_run import finished, small_spec
from small_cohort import make_cohort

from cardiolens.config.sweep import TrackerSpec
from cardiolens.show.page.write import write_page
from cardiolens.show.tracker import wandb_runs
from cardiolens.show.tracker.tracked_progress import track
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run
from tests.wandb_files import content, kept_tables

TABLES = {"cards", "arms", "scores", "comparisons", "collapse", "confusion"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = make_cohort(tmp_path_factory.mktemp("track"), 2)
    made = finished(small_spec(root, "mirror", tracker={"mode": "offline"}, control=["none"]))
    write_page(made, [made])
    assert track(made, documents.read_configuration(made).tracker)
    wandb.teardown()  # as at the end of a process: waits until its service has written everything
    return made


def mirrored(run: Run) -> list[Path]:
    return sorted(run.root.glob("wandb/offline-run-*/*.wandb"))


def again(run: Run) -> list[Path]:
    """The files of W&B that are written on top of those that are there."""
    before = set(mirrored(run))
    assert track(run, TrackerSpec())
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
