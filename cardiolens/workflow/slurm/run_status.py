"""Print the state of a run, model by model, from the disk and SLURM's job list."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rich.table import Table

from cardiolens.base.console import console, say
from cardiolens.base.errors import InputError
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import identify
from cardiolens.inference.plan.missing import WORK, Missing, missing_in
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run, store_of
from cardiolens.workflow.slurm import commands
from cardiolens.workflow.slurm.commands import Alive
from cardiolens.workflow.slurm.records import ModelRecord, read_model_record
from cardiolens.workflow.steps.conclude import closing_line

_WINDOW_SECONDS = 600.0  # averaging window of the rate
_LEFT = ("model", "state", "where or why")
_NOTHING = Missing(WORK.empty_table(), unique=0, done=0, exhausted=0)  # of a model that is not planned
_RIGHT = ("done / unique", "failed", "a second", "restarts", "left")


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """Progress of one model: one row of `status`."""

    record: ModelRecord
    state: str  # queued | running | starting again | done | failed | not running | not planned
    where: str  # job and nodes, or the reason for waiting or failure
    remaining: Missing = _NOTHING
    rate: float = 0.0  # recent requests per second; 0 if no job runs

    @property
    def seconds_left(self) -> float | None:
        return self.remaining.left / self.rate if self.rate and self.remaining.left else None

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as it is printed."""
        left = "-" if self.seconds_left is None else str(timedelta(seconds=round(self.seconds_left)))
        rate, remaining = f"{self.rate:.1f}" if self.rate else "-", self.remaining
        counts = f"{remaining.done:,} / {remaining.unique:,}", str(remaining.exhausted), rate
        return self.record.model, self.state, self.where, *counts, str(self.record.restarts), left


def status(run: Run) -> int:
    """Print one row per model; 0 if every planned request has a final completion, else 1."""
    spec = documents.read_configuration(run)
    alive = commands.alive(run) if shutil.which("squeue") and any(run.jobs.glob("*.sbatch")) else []
    rows = [
        _status(run, spec, model, [job for job in alive if job.name == model.name]) for model in spec.model
    ]
    table = Table(title=f"status of {run.root}", title_justify="left")
    for name in (*_LEFT, *_RIGHT):
        table.add_column(name, justify="left" if name in _LEFT else "right")
    for row in rows:
        table.add_row(*row.cells)
    console.print(table)
    for job in alive:
        if job.name in ("prepare", "score"):
            say(f"job {job.id} {job.name} {job.state} {job.where}")
    if (closing := closing_line(run, datetime.now(UTC).timestamp())) is not None:
        say(closing)
    say(f"page: {run.page}" if run.page.exists() else "no page yet")
    return 0 if all(row.state == "done" and not row.remaining.exhausted for row in rows) else 1


def _status(run: Run, spec: SweepSpec, model: ModelSpec, alive: Sequence[Alive]) -> ModelStatus:
    record = read_model_record(run, model.name)
    if not run.requests(model.name).is_dir():
        state = "failed" if record.state == "failed" else "not planned"
        return ModelStatus(record, state, record.reason or _where(alive))
    store = store_of(run, spec)
    try:  # a finished run has the key in its manifest, since the model's files may be gone
        known = documents.read_manifest(run)["models"] if run.manifest.exists() else {}
        facts = known.get(model.name)
        model_key = str(facts["model_key"]) if facts else identify(model, store.models).model_key
    except InputError as error:
        return ModelStatus(record, "failed", str(error))
    remaining = missing_in(run, store, spec, model.name, model_key)
    times = tables.read(store.completions(model_key), schemas.COMPLETIONS, ("written_at",))
    started = record.attempts[-1].started if record.attempts else None
    return status_of(
        record, remaining, alive, rate_of(times["written_at"].to_pylist(), datetime.now(UTC), started)
    )


def status_of(record: ModelRecord, remaining: Missing, alive: Sequence[Alive], rate: float) -> ModelStatus:
    """Return the status of a planned model; `alive` are its live jobs."""
    last = record.attempts[-1] if record.attempts else None
    if not remaining.left:
        return ModelStatus(record, "done", "", remaining)
    if alive and alive[0].state == "PENDING":
        return ModelStatus(record, "starting again" if last else "queued", _where(alive), remaining)
    if alive:
        return ModelStatus(record, "running", _where(alive), remaining, rate)
    if record.state == "failed":
        return ModelStatus(record, "failed", record.reason, remaining)
    ended = f"last: {last.outcome} {last.reason}".rstrip() if last else ""
    return ModelStatus(record, "not running", ended, remaining)


def rate_of(completions: Sequence[datetime], now: datetime, started: datetime | None) -> float:
    """Return completions per second over the last ten minutes, counted from `started` at the earliest."""
    since = max(now.timestamp() - _WINDOW_SECONDS, started.timestamp() if started else 0.0)
    late = sum(moment.timestamp() >= since for moment in completions)
    return late / max(1.0, now.timestamp() - since)


def _where(alive: Sequence[Alive]) -> str:
    return f"job {alive[0].id} {alive[0].where}" if alive else ""
