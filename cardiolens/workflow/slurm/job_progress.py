"""Progress of each model of a run, from the disk and SLURM's job list."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cardiolens.inference.plan.missing import Missing
from cardiolens.workflow.slurm.commands import Alive
from cardiolens.workflow.slurm.model_record import ModelRecord

_WINDOW_SECONDS = 600.0  # averaging window of the rate


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """Progress of one model: one row of `status`."""

    model: str
    state: str  # queued | running | starting again | done | failed | not running | not planned
    where: str  # nodes, or the reason for waiting or failure
    done: int
    unique: int
    failed: int  # requests out of attempts
    rate: float  # recent requests per second; 0 if no job runs
    restarts: int

    @property
    def seconds_left(self) -> float | None:
        n_remaining = self.unique - self.done - self.failed
        return n_remaining / self.rate if self.rate and n_remaining else None


def progress_of(
    model: str, remaining: Missing, group: ModelRecord, alive: Sequence[Alive], rate: float
) -> ModelProgress:
    """Return the progress of a planned model; `alive` are its live jobs."""
    state, where = _state(remaining, group, alive)
    return ModelProgress(
        model=model,
        state=state,
        where=where,
        done=remaining.done,
        unique=remaining.unique,
        failed=remaining.exhausted,
        rate=rate if state == "running" else 0.0,
        restarts=_restarts(group),
    )


def without_requests(model: str, group: ModelRecord, alive: Sequence[Alive]) -> ModelProgress:
    """Return the progress of a model without planned requests; `alive` are its live jobs."""
    failed = group.state == "failed"
    where = group.reason if failed or not alive else f"job {alive[0].id} {alive[0].where}"
    return ModelProgress(model, "failed" if failed else "not planned", where, 0, 0, 0, 0.0, _restarts(group))


def _state(remaining: Missing, group: ModelRecord, alive: Sequence[Alive]) -> tuple[str, str]:
    if not remaining.left:
        return "done", ""
    for job in alive:
        if job.state == "PENDING":
            return ("starting again" if group.attempts else "queued"), f"job {job.id} {job.where}"
        return "running", f"job {job.id} on {job.where}"
    if group.state == "failed":
        return "failed", group.reason
    last = group.attempts[-1] if group.attempts else None
    return "not running", "" if last is None else f"last: {last.outcome} {last.reason}".rstrip()


def _restarts(group: ModelRecord) -> int:
    """Return how often the last job restarted."""
    job = group.attempts[-1].job if group.attempts else ""
    return max(0, sum(attempt.job == job for attempt in group.attempts) - 1)


def rate_of(completions: Sequence[datetime], now: datetime, started: datetime | None) -> float:
    """Return completions per second over the last ten minutes, counted from `started` at the earliest."""
    since = max(now.timestamp() - _WINDOW_SECONDS, started.timestamp() if started else 0.0)
    late = [moment for moment in completions if moment.timestamp() >= since]
    return len(late) / max(1.0, now.timestamp() - since) if late else 0.0
