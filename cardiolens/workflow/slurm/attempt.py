"""Record each start of a model's job when it begins and when it ends."""

import os
import socket
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from cardiolens.base import disk
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.paths import PACKAGE
from cardiolens.inference.stream.pipeline import Streamed
from cardiolens.storage.places import Run
from cardiolens.workflow.slurm import commands
from cardiolens.workflow.slurm.model_record import (
    Attempt,
    ModelRecord,
    ModelState,
    RestartDecision,
    read_model_record,
    verdict,
    write_model_record,
)


@dataclass(frozen=True, slots=True)
class Start:
    """The job of one start, its restart count and its nodes; outside SLURM, the process is the job."""

    job: str
    restarts: int
    max_restarts: int
    nodes: tuple[str, ...]
    n_nodes: int  # nodes on which the job could run

    @staticmethod
    def of(environment: Mapping[str, str], max_restarts: int) -> "Start":
        """Read the start from the environment of the process."""
        if "SLURM_JOB_NODELIST" not in environment:
            return Start(f"process-{os.getpid()}", 0, max_restarts, (socket.gethostname(),), 2)
        return Start(
            job=environment.get("CARDIOLENS_JOB", environment["SLURM_JOB_ID"]),
            restarts=int(environment.get("SLURM_RESTART_COUNT", "0")),
            max_restarts=max_restarts,
            nodes=commands.hostnames(environment["SLURM_JOB_NODELIST"]),
            n_nodes=commands.partitions().get(environment.get("SLURM_JOB_PARTITION", ""), 1),
        )


def begin(run: Run, model: str, start: Start, rows: int) -> RestartDecision:
    """Record a start and decide whether it may continue; first close earlier starts without a recorded end.

    `rows` is the number of final completions so far. A start on an excluded node is not recorded.
    """
    record = read_model_record(run.model_records, model)
    attempts = [_closed(attempt, rows) for attempt in record.attempts]
    decision = _verdict(attempts, start, start.restarts - 1)  # the decision when the previous start ended
    if decision.go_on and not decision.bars(start.nodes):
        now = datetime.now(UTC)
        attempts.append(Attempt(job=start.job, nodes=start.nodes, started=now, rows_before=rows))
    _write(run, record, attempts, decision, "running")
    return decision


def end(
    run: Run,
    model: str,
    start: Start,
    *,
    rows: int,
    outcome: Literal["done", "stopped", "failed"],
    reason: str = "",
    streamed: Streamed | None = None,
) -> RestartDecision:
    """Record the end of a start, and decide whether the job should start again."""
    record = read_model_record(run.model_records, model)
    closed = record.attempts[-1].model_copy(
        update={
            "ended": datetime.now(UTC),
            "rows_after": rows,
            "outcome": outcome,
            "reason": reason,
            "counters": dict(streamed.counters) if streamed else {},
            "seats": tuple(sorted(streamed.seats)) if streamed else (),
        }
    )
    attempts = [*record.attempts[:-1], closed]
    decision = RestartDecision(go_on=True) if outcome == "done" else _verdict(attempts, start, start.restarts)
    _write(run, record, attempts, decision, "done" if outcome == "done" else "waiting")
    return decision


def give_up(run: Run, model: str, reason: str) -> None:
    """Record that a model cannot run; a start in progress is recorded as failed."""
    record = read_model_record(run.model_records, model)
    failed = {"outcome": "failed", "reason": reason, "ended": datetime.now(UTC)}
    attempts = tuple(
        attempt.model_copy(update=failed) if attempt.outcome == "running" else attempt
        for attempt in record.attempts
    )
    changed = {"state": "failed", "reason": reason, "attempts": attempts}
    write_model_record(run.model_records, record.model_copy(update=changed))


@contextmanager
def given_up_on_error(run: Run, model: str) -> Iterator[None]:
    """Record any exception of the block as the final failure of a model, then re-raise it."""
    try:
        yield
    except Exception as error:
        give_up(run, model, _cause(error))
        raise


def _cause(error: Exception) -> str:
    """Return the cause on one line; the message of an unforeseen error is left out: it may name a patient."""
    if isinstance(error, InputError | RunError):
        return str(error)
    detail = f" ({error.strerror})" if isinstance(error, OSError) else ""
    lines = traceback.extract_tb(error.__traceback__)
    ours = [line for line in lines if Path(line.filename).is_relative_to(PACKAGE)][-1]
    place = f"{Path(ours.filename).relative_to(PACKAGE.parent)}:{ours.lineno}"
    return f"{type(error).__name__}{detail} at {place}; see the output of the job for the rest"


def _closed(attempt: Attempt, rows: int) -> Attempt:
    """Close an attempt without a recorded end, e.g. one that was killed."""
    if attempt.outcome != "running":
        return attempt
    return attempt.model_copy(update={"outcome": "lost", "reason": "no end recorded", "rows_after": rows})


def _verdict(attempts: Sequence[Attempt], start: Start, restarts: int) -> RestartDecision:
    attempts_of_job = [attempt for attempt in attempts if attempt.job == start.job]
    return verdict(attempts_of_job, restarts, start.max_restarts, start.n_nodes)


def _write(
    run: Run, record: ModelRecord, attempts: Sequence[Attempt], decision: RestartDecision, state: ModelState
) -> None:
    """Write the record, for people and the score job, and the excluded nodes, for the batch script."""
    changed = {
        "attempts": tuple(attempts),
        "state": state if decision.go_on else "failed",
        "reason": decision.reason,
    }
    write_model_record(run.model_records, record.model_copy(update=changed))
    disk.write_text(run.node_exclusions(record.model), ",".join(decision.exclude))
