"""Records of a submitted run: its jobs, and every start of each model's job."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.inference.stream.pipeline import Streamed
from cardiolens.storage.places import Run

Step = Literal["prepare", "model", "score"]
Outcome = Literal["running", "done", "stopped", "failed", "lost"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class Queued(_Record):
    """A job that SLURM accepted."""

    id: str
    step: Step
    model: str = ""
    submitted: datetime


class Submission(_Record):
    """All jobs ever submitted for a run."""

    jobs: tuple[Queued, ...] = ()

    def find(self, job: str) -> Queued | None:
        """Return the last job with an id: a reinstalled cluster may reuse ids."""
        return next((queued for queued in reversed(self.jobs) if queued.id == job), None)


class Attempt(_Record):
    """One start of a model's job."""

    job: str
    nodes: str  # as SLURM writes them
    started: datetime
    rows_before: int  # final completions of the model when it started
    ended: datetime | None = None
    rows_after: int | None = None
    outcome: Outcome = "running"
    reason: str = ""
    counters: Mapping[str, int] = {}
    seats: tuple[str, ...] = ()

    @property
    def added(self) -> int:
        """Number of final completions that this start added."""
        return (self.rows_after or self.rows_before) - self.rows_before


class ModelRecord(_Record):
    """The state of one model and all starts of its jobs."""

    model: str
    state: Literal["running", "waiting", "done", "failed"] = "waiting"
    reason: str = ""
    attempts: tuple[Attempt, ...] = ()

    @property
    def counters(self) -> Counter[str]:
        """Sum of the counters of all starts; a start without counters counts its added rows as ok."""
        total: Counter[str] = Counter()
        for attempt in self.attempts:
            total += Counter(attempt.counters or {"ok": attempt.added})
        return total

    @property
    def restarts(self) -> int:
        """How often the last job started again."""
        return max(0, sum(attempt.job == self.attempts[-1].job for attempt in self.attempts) - 1)


def why_not_again(attempts: Sequence[Attempt], max_restarts: int) -> str:
    """Return why a job with work left may not start again after these attempts of it; empty if it may.

    It ends after `max_restarts` restarts, or two starts in a row without new rows.
    """
    last = attempts[-1].reason if attempts else ""
    if len(attempts) > max_restarts:
        return f"restarted {max_restarts} times, the most allowed: {last}"
    if len(attempts) > 1 and not any(attempt.added for attempt in attempts[-2:]):
        return f"a restart added no rows: {last}"
    return ""


def begin(run: Run, model: str, attempt: Attempt, max_restarts: int) -> str:
    """Record a start; return why its job may not start again, or "". Starts without an end are closed."""
    record = read_model_record(run, model)
    closed = {"outcome": "lost", "reason": "no end recorded", "rows_after": attempt.rows_before}
    attempts = tuple(
        before.model_copy(update=closed) if before.outcome == "running" else before
        for before in record.attempts
    )
    reason = why_not_again([before for before in attempts if before.job == attempt.job], max_restarts)
    state = "failed" if reason else "running"
    started = attempts if reason else (*attempts, attempt)
    _write_model_record(run, record, attempts=started, state=state, reason=reason)
    return reason


def end(
    run: Run,
    model: str,
    *,
    rows: int,
    outcome: Outcome,
    reason: str,
    streamed: Streamed | None,
    max_restarts: int,
) -> str:
    """Record the end of the last start; return why its job may not start again, or ""."""
    record = read_model_record(run, model)
    changed = {"ended": datetime.now(UTC), "rows_after": rows, "outcome": outcome, "reason": reason}
    if streamed is not None:
        changed |= {"counters": dict(streamed.counters), "seats": tuple(sorted(streamed.seats))}
    attempts = (*record.attempts[:-1], record.attempts[-1].model_copy(update=changed))
    of_job = [attempt for attempt in attempts if attempt.job == attempts[-1].job]
    why_not = "" if outcome == "done" else why_not_again(of_job, max_restarts)
    state = "done" if outcome == "done" else "failed" if why_not else "waiting"
    _write_model_record(run, record, attempts=attempts, state=state, reason=why_not)
    return why_not


def give_up(run: Run, model: str, reason: str) -> None:
    """Record that a model cannot run; a start in progress is recorded as failed."""
    record = read_model_record(run, model)
    failed = {"outcome": "failed", "reason": reason, "ended": datetime.now(UTC)}
    attempts = tuple(
        attempt.model_copy(update=failed) if attempt.outcome == "running" else attempt
        for attempt in record.attempts
    )
    _write_model_record(run, record, attempts=attempts, state="failed", reason=reason)


def set_done(run: Run, record: ModelRecord) -> None:
    """Record a model as done."""
    _write_model_record(run, record, state="done")


def read_model_record(run: Run, model: str) -> ModelRecord:
    """Read the record of a model, empty if no job has started; InputError if the file is not a record."""
    return _read(run.model_records / f"{model}.json", ModelRecord(model=model))


def read_submission(run: Run) -> Submission:
    """Read the submissions of a run, empty if there were none; InputError if the file is not a record."""
    return _read(run.jobs / "jobs.json", Submission())


def write_submission(run: Run, jobs: Sequence[Queued]) -> None:
    """Add jobs to the record of the run's submissions."""
    record = Submission(jobs=(*read_submission(run).jobs, *jobs))
    disk.write_text(run.jobs / "jobs.json", record.model_dump_json(indent=1) + "\n")


_Kind = TypeVar("_Kind", bound=_Record)


def _read(path: Path, absent: _Kind) -> _Kind:
    try:
        return type(absent).model_validate_json(read_bytes(path))
    except FileNotFoundError:
        return absent
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check it, or delete it") from None
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise InputError(f"{path}: no record of this run's jobs ({reason}); delete it") from None


def _write_model_record(run: Run, record: ModelRecord, **changed: object) -> None:
    tree = record.model_copy(update=changed).model_dump(mode="json")
    disk.write_text(run.model_records / f"{record.model}.json", json.dumps(tree, indent=1))
