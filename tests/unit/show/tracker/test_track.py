"""The mirror in W&B, offline: made again from the disk it says the same, and nothing of the machine."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pytest
import wandb
from page_run import finished, small_spec
from small_cohort import make_cohort

from cardiolens.show.tracker.mirror import track
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run
from tests.wandb_files import content


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = make_cohort(tmp_path_factory.mktemp("track"), 2)
    tracker = {"kind": "wandb", "project": "mirror"}
    made = finished(small_spec(root, "mirror", tracker=tracker, control=["none"]))
    assert track(made, documents.read_configuration(made).tracker)
    wandb.teardown()  # as at the end of a process: waits until its service has written everything
    return made


def mirrored(run: Run) -> list[Path]:
    return sorted(run.root.glob("wandb/offline-run-*/*.wandb"))


def test_a_mirror_made_again_says_what_the_first_said(run: Run) -> None:
    first = {path: content(path) for path in mirrored(run)}
    command = [sys.executable, "-m", "cardiolens.track", f"run={run.root}"]
    subprocess.run(command, check=True, capture_output=True)
    again = [content(path) for path in mirrored(run) if path not in first]
    by_id = {one["run_id"]: one for one in again}
    assert len(by_id) == len(again) == len(first) == 3
    assert by_id == {one["run_id"]: one for one in first.values()}
    (sweep,) = [one for one in again if one["job_type"] == "sweep"]
    rows = {tuple(table["columns"][:2]): len(table["data"]) for table in sweep["tables"].values()}
    scores = tables.read(run.scores, schemas.SCORES)
    assert rows[("arm_id", "metric")] == scores.filter(pc.is_null(scores["versus_arm_id"])).num_rows
    assert rows[("arm_id", "subtask")] > 0
    arms = [one for one in again if one["job_type"] == "arm"]
    assert all(isinstance(one["logged"]["tier_1/primary"], float) for one in arms)


@pytest.mark.slow  # W&B tries for a minute and a half
def test_a_server_that_cannot_be_reached_is_an_error_that_says_where_the_numbers_are(run: Run) -> None:
    unreachable = {"WANDB_BASE_URL": "http://127.0.0.1:9", "WANDB_API_KEY": "0" * 40}
    done = subprocess.run(
        [sys.executable, "-m", "cardiolens.track", f"run={run.root}", "mode=online"],
        env=os.environ | unreachable,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Weights & Biases was not written" in done.stderr
    assert f"every number is in {run.root}" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_of_the_machine_is_in_a_mirror(run: Run) -> None:
    for path in mirrored(run):
        assert content(path)["host"] == "unnamed"
        assert str(run.root).encode() not in path.read_bytes()
