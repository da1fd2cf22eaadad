"""Restart decisions of a model's job: caps, restarts without new rows, excluded nodes, unrecorded ends."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from cardiolens.inference.plan.missing import WORK, Missing
from cardiolens.storage.places import Run
from cardiolens.workflow.slurm.attempt import Start, begin, end
from cardiolens.workflow.slurm.commands import Alive
from cardiolens.workflow.slurm.job_progress import progress_of, rate_of
from cardiolens.workflow.slurm.model_record import Attempt, ModelRecord, read_model_record, verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def attempt(outcome: str, added: int, node: str = "n1", reason: str = "") -> Attempt:
    return Attempt(
        job="7", nodes=(node,), started=NOW, rows_before=0, rows_after=added, outcome=outcome, reason=reason
    )


@pytest.mark.parametrize(
    ("attempts", "restarts", "go_on", "exclude", "said"),
    [
        ([], 0, True, (), ""),
        ([attempt("stopped", 0)], 0, True, (), ""),
        ([attempt("stopped", 0), attempt("stopped", 0)], 1, False, (), "a restart added no rows"),
        ([attempt("stopped", 0), attempt("stopped", 5)], 1, True, (), ""),
        ([attempt("stopped", 5), attempt("stopped", 5)], 3, False, (), "restarted 3 times"),
        ([attempt("lost", 5), attempt("lost", 5)], 1, True, ("n1",), ""),
        ([attempt("failed", 0, reason="a")] * 2, 1, True, ("n1",), ""),
        ([attempt("failed", 0, reason="a"), attempt("failed", 0, reason="b")], 1, False, (), "no rows: b"),
        ([attempt("failed", 0, reason="a"), attempt("failed", 0, "n2", "a")], 1, False, (), "no rows: a"),
        ([*[attempt("failed", 0, reason="a")] * 2, attempt("failed", 0, "n2", "a")], 2, False, ("n1",), "no"),
        ([attempt("lost", 5, node) for node in ("n1", "n2") * 2], 2, False, ("n1", "n2"), "every node"),
    ],
)  # fmt: skip
def test_whether_another_start_makes_sense(
    attempts: list[Attempt], restarts: int, go_on: bool, exclude: tuple[str, ...], said: str
) -> None:
    found = verdict(attempts, restarts, max_restarts=3, n_nodes=2)
    assert (found.go_on, found.exclude) == (go_on, exclude)
    assert said in found.reason


def test_a_start_that_ended_unheard_is_closed_by_the_next(tmp_path: Path) -> None:
    run = Run(tmp_path)
    first = Start("7", 0, 5, ("n1",), 2)
    assert begin(run, "m", first, 10).go_on
    second = Start("7", 1, 5, ("n2",), 2)
    assert begin(run, "m", second, 25).go_on
    said = end(run, "m", second, rows=40, outcome="done")
    record = read_model_record(run.model_records, "m")
    assert said.go_on
    assert record.state == "done"
    assert [(one.outcome, one.added, one.nodes) for one in record.attempts] == [
        ("lost", 15, ("n1",)),
        ("done", 15, ("n2",)),
    ]
    assert record.counters["ok"] == 30


def test_a_node_that_failed_twice_is_left_before_a_third_start(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for restarts in (0, 1):
        start = Start("7", restarts, 5, ("n1",), 2)
        assert begin(run, "m", start, 0).go_on
        assert end(run, "m", start, rows=0, outcome="failed", reason="no GPU answers").go_on
    assert run.node_exclusions("m").read_text() == "n1"
    said = begin(run, "m", Start("7", 2, 5, ("n1",), 2), 0)
    assert said.bars(("n1",))
    assert len(read_model_record(run.model_records, "m").attempts) == 2, "no start was made there"
    elsewhere = Start("7", 3, 5, ("n2",), 2)
    assert begin(run, "m", elsewhere, 0).go_on
    assert not end(run, "m", elsewhere, rows=0, outcome="failed", reason="no GPU answers").go_on
    assert read_model_record(run.model_records, "m").state == "failed"


def test_submitting_again_counts_anew(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for job in ("7", "8"):
        start = Start(job, 0, 5, ("n1",), 2)
        assert begin(run, "m", start, 0).go_on
        assert end(run, "m", start, rows=0, outcome="stopped").go_on


def missing(unique: int, done: int, exhausted: int = 0) -> Missing:
    return Missing(pa.Table.from_pylist([], schema=WORK), unique, done, exhausted)


@pytest.mark.parametrize(
    ("left", "alive", "group", "state"),
    [
        (missing(9, 9), [], ModelRecord(model="m"), "done"),
        (missing(9, 8, 1), [], ModelRecord(model="m"), "done"),
        (missing(9, 0), [Alive("7", "PENDING", "(Priority)")], ModelRecord(model="m"), "queued"),
        (missing(9, 0), [Alive("7", "RUNNING", "n1")], ModelRecord(model="m"), "running"),
        (missing(9, 0), [], ModelRecord(model="m", state="failed", reason="why"), "failed"),
        (missing(9, 0), [], ModelRecord(model="m"), "not running"),
    ],
)
def test_how_a_model_stands(left: Missing, alive: list[Alive], group: ModelRecord, state: str) -> None:
    assert progress_of("m", left, group, alive, rate=1.0).state == state


def test_time_left_follows_the_rate_of_this_start() -> None:
    written = [NOW - timedelta(seconds=second) for second in range(0, 2000, 2)]
    rate = rate_of(written, NOW, NOW - timedelta(seconds=100))
    assert rate == pytest.approx(0.51)
    running = progress_of("m", missing(151, 100), ModelRecord(model="m"), [Alive("7", "RUNNING", "n1")], rate)
    assert running.seconds_left == pytest.approx(100)
