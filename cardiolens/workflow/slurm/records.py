"""Records of a submitted run: every start of each model's job."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from cardiolens.base import disk
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import Spec, describe
from cardiolens.inference.stream.pipeline import Streamed
from cardiolens.storage.places import Run

Outcome = Literal["running", "done", "stopped", "failed", "lost"]


class Attempt(Spec):
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


class ModelRecord(Spec):
    """The state of one model and all starts of its jobs."""

    model: str
    state: Literal["running", "waiting", "done", "failed"] = "waiting"
    reason: str = ""
    attempts: tuple[Attempt, ...] = ()

    @property
    def streamed(self) -> Streamed:
        """Sum of all starts; a start without counters counts its added rows as ok."""
        counters = sum(
            (Counter(attempt.counters or {"ok": attempt.added}) for attempt in self.attempts), Counter()
        )
        return Streamed(counters, frozenset(seat for attempt in self.attempts for seat in attempt.seats))

    @property
    def restarts(self) -> int:
        """How often the last job started again."""
        return max(0, sum(attempt.job == self.attempts[-1].job for attempt in self.attempts) - 1)


def begin(run: Run, model: str, attempt: Attempt) -> None:
    """Record a start; RunError if its job may not start again. Starts without an end are closed before."""
    closed = _closed(run, model, outcome="lost", reason="no end recorded", rows_after=attempt.rows_before)
    _write(run, model, attempts=closed)
    _check_progress(closed, attempt.job)
    _write(run, model, attempts=(*closed, attempt), state="running", reason="")


def end(run: Run, model: str, *, rows: int, outcome: Outcome, reason: str, streamed: Streamed | None) -> None:
    """Record the end of the last start; RunError if work is left and its job may not start again."""
    changed: dict[str, object] = {"rows_after": rows, "outcome": outcome, "reason": reason}
    if streamed is not None:
        changed |= {"counters": dict(streamed.counters), "seats": tuple(sorted(streamed.seats))}
    attempts = _closed(run, model, ended=datetime.now(UTC), **changed)
    _write(run, model, attempts=attempts, state="done" if outcome == "done" else "waiting")
    if outcome != "done":
        _check_progress(attempts, attempts[-1].job)


def give_up(run: Run, model: str, reason: str) -> None:
    """Record that a model cannot run; a start in progress is recorded as failed."""
    attempts = _closed(run, model, outcome="failed", reason=reason, ended=datetime.now(UTC))
    _write(run, model, attempts=attempts, state="failed", reason=reason)


def _closed(run: Run, model: str, **changed: object) -> tuple[Attempt, ...]:
    """Return the starts of a model; the one that runs has the changed fields."""
    return tuple(
        attempt.model_copy(update=changed) if attempt.outcome == "running" else attempt
        for attempt in read_model_record(run, model).attempts
    )


def _check_progress(attempts: Sequence[Attempt], job: str) -> None:
    """Raise RunError if the last two starts of a job added no completion."""
    last = [attempt for attempt in attempts if attempt.job == job][-2:]
    if len(last) == 2 and not any(attempt.added for attempt in last):
        raise RunError(f"a restart added no rows: {last[-1].reason or last[-1].outcome}")


def read_model_record(run: Run, model: str) -> ModelRecord:
    """Read the record of a model, empty if no job has started; InputError if the file is not a record."""
    path = run.model_records / f"{model}.json"
    try:
        return ModelRecord.model_validate(read_json(path))
    except FileNotFoundError:
        return ModelRecord(model=model)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: no record of a model's jobs ({describe(error)}); delete it") from None


def _write(run: Run, model: str, **changed: object) -> None:
    record = read_model_record(run, model).model_copy(update=changed)
    disk.write_text(run.model_records / f"{model}.json", record.model_dump_json(indent=1))
