"""Sweeps of chains that are killed (SIGKILL) and go on: no stage that is on disk is asked again."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import killed_chains
import pytest
from chain_cohort import Scribe, make_cohort, spec_of
from small_cohort import swept

from cardiolens.storage import schemas, tables
from cardiolens.storage.schemas import FINAL

N = 3
STEPS = 3 * N


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Cases, and what an undisturbed sweep of them leaves: completions by key, verdicts."""
    root = make_cohort(tmp_path_factory.mktemp("chains"), N)
    _, judged = swept(spec_of(root), Scribe())
    return root, said(root), judged.replies.verdicts


@pytest.fixture
def fresh(undisturbed):
    root, *_ = undisturbed
    shutil.rmtree(root / "store" / "completions", ignore_errors=True)
    (root / "asked").unlink(missing_ok=True)
    return root


def rows_of(root):
    folders = (root / "store" / "completions").glob("*")
    return [row for folder in folders for row in tables.read(folder, schemas.COMPLETIONS).to_pylist()]


def said(root):
    """Texts of the final completions on disk; none is there twice."""
    final = [row for row in rows_of(root) if row["status"] in FINAL]
    texts = {row["request_key"]: row["text"] for row in final}
    assert len(texts) == len(final)
    return texts


def kill(root, flush_rows, moment, at):
    """Sweep until the moment comes; the keys of what was asked."""
    (root / "asked").write_text("")
    command = [sys.executable, killed_chains.__file__, str(root), str(flush_rows), moment, str(at)]
    path = os.pathsep.join([str(Path(killed_chains.__file__).parent), *sys.path])
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    return (root / "asked").read_text().split()


# Parts of one row lie between the stages of a chain; parts of four hold stages of several chains.
@pytest.mark.full
@pytest.mark.parametrize(
    ("flush_rows", "moment", "at"),
    [
        (1, "asked", 5),
        (1, "writing", 4),
        (1, "written", 2),
        (1, "written", STEPS),
        (4, "written", 1),
    ],
)
def test_a_killed_sweep_of_chains_asks_nothing_again_that_is_on_disk(
    fresh, undisturbed, flush_rows, moment, at
):
    _, texts, verdicts = undisturbed
    before = kill(fresh, flush_rows, moment, at)
    kept = set(said(fresh))
    assert len(kept) < len(texts), "a whole run tells nothing"
    assert kept or moment == "asked"
    scribe = Scribe()
    _, judged = swept(spec_of(fresh), scribe)
    after = [ask.request_key for ask in scribe.asked]
    assert not kept & set(after)
    assert len(set(before)) == len(before)
    assert len(set(after)) == len(after)
    assert set(before) & set(after) == set(before) - kept, "in flight, and nothing else, is asked again"
    assert len(set(before) | set(after)) == STEPS
    assert said(fresh) == texts
    assert judged.replies.verdicts.equals(verdicts)
