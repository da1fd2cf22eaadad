"""The mirror in W&B, online, against a server of ours: what arrives is what offline files hold."""

import json
import os
import re
import subprocess
import sys
from getpass import getuser
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from page_run import finished, small_spec

from cardiolens.base.errors import InputError
from cardiolens.config.sweep import TrackerSpec
from cardiolens.show.page.write import write_page
from cardiolens.show.tracker.wandb_runs import check_tracker
from cardiolens.storage import tables
from cardiolens.storage.places import Run
from tests.wandb_files import content
from tests.wandb_server import Mood, Server, wandb_server

PATIENTS = 2


@pytest.fixture(scope="module")
def run(root: Path) -> Run:
    made = finished(small_spec(root, "online", tracker={"mode": "offline"}, control=["none"]))
    write_page(made, [made])
    (made.root / "progress").mkdir(exist_ok=True)
    rows = [{"time": 1.0 + row, "requests/done": row} for row in range(3)]
    made.progress("oracle").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return made


MIRROR = """
import sys
from pathlib import Path
from cardiolens.show.page.page_data import read_facts
from cardiolens.show.tracker.tracked_progress import track
from cardiolens.storage import documents
from cardiolens.storage.places import Run
run = Run(Path(sys.argv[1]))
spec = documents.read_configuration(run).tracker.model_copy(update={"mode": sys.argv[2]})
sys.exit(not track(read_facts(run, [run]), spec))
"""


def tracked(run: Run, server: Server, mode: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MIRROR, str(run.root), mode]
    said = os.environ | server.environment
    return subprocess.run(command, env=said, capture_output=True, text=True, check=False, timeout=600)


def offline(run: Run) -> dict[str, dict[str, Any]]:
    return {one["run_id"]: one for one in map(content, run.root.glob("wandb/offline-run-*/*.wandb"))}


def arrived(server: Server) -> dict[str, dict[str, Any]]:
    return {run_id: bucket.content for run_id, bucket in server.buckets.items()}


@pytest.mark.full
def test_what_arrives_is_what_offline_files_hold_and_names_nothing_of_the_machine(run: Run) -> None:
    with wandb_server() as server:
        done = tracked(run, server, "offline")
        assert done.returncode == 0, done.stderr
        assert not server.received
        for _ in ("first", "again"):  # ids are fixed: a mirror made again replaces, it doubles nothing
            done = tracked(run, server, "online")
            assert done.returncode == 0, done.stderr
            assert arrived(server) == offline(run)
        assert all(bucket.complete for bucket in server.buckets.values())
        assert {"scores.table.json", "confusion.table.json"} <= set(server.tables)
        for name, written in (("scores", run.scores), ("comparisons", run.comparisons)):
            logged = pq.read_metadata(BytesIO(server.tables[f"{name}.parquet"])).num_rows
            assert logged == sum(pq.read_metadata(part).num_rows for part in tables.parts(written))
        assert not [sent[:99] for sent in server.received if str(run.root).encode() in sent]
        # the code of the page has words of every kind
        others = [sent for sent in server.received if b"/media/html/page_" not in sent[:99]]
        for secret in (os.uname().nodename, str(Path.home()), getuser()):
            word = re.compile(rb"(?<![A-Za-z0-9])" + re.escape(secret.encode()) + rb"(?![A-Za-z0-9])")
            assert not [sent[:99] for sent in others if word.search(sent)], secret


def test_offline_files_arrive_when_they_are_synced(run: Run) -> None:
    held = offline(run)
    with wandb_server() as server:
        folders = sorted(map(str, run.root.glob("wandb/offline-run-*")))
        command = [sys.executable, "-m", "wandb", "sync", *folders]
        said = os.environ | server.environment
        done = subprocess.run(command, env=said, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        assert arrived(server) == held


@pytest.mark.parametrize("name", ["WANDB_SWEEP_ID", "WANDB_LAUNCH"])
def test_under_an_agent_nothing_is_mirrored(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "s1")
    with pytest.raises(InputError, match=f"{name}: is set by an agent of W&B"):
        check_tracker(TrackerSpec(mode="online"))


@pytest.mark.full
@pytest.mark.parametrize(
    "mood",
    [
        "refuses",
        "forgets",
        "babbles",
        *(pytest.param(mood, marks=pytest.mark.long) for mood in ("slow", "fails")),
    ],
)
def test_a_server_that_does_not_serve_harms_no_sweep(run: Run, mood: Mood) -> None:
    scores = [path.read_bytes() for path in sorted(run.scores.iterdir())]
    with wandb_server(mood) as server:
        done = tracked(run, server, "online")
    assert done.returncode == (0 if mood == "slow" else 1)
    assert "Traceback" not in done.stderr
    said = f"Weights & Biases was not written (.+); every number is in {re.escape(str(run.root))}"
    assert (mood == "slow") != bool(re.search(said, done.stderr)), done.stderr
    assert [path.read_bytes() for path in sorted(run.scores.iterdir())] == scores
