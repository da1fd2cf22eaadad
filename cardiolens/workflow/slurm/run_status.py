"""Print the state of a submitted sweep."""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rich.table import Table

from cardiolens.base.console import console, say
from cardiolens.base.errors import InputError
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import identify
from cardiolens.inference.plan.missing import missing_in
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run, Store
from cardiolens.storage.run_place import store_of
from cardiolens.workflow.slurm import commands
from cardiolens.workflow.slurm.commands import Alive
from cardiolens.workflow.slurm.job_progress import ModelProgress, progress_of, rate_of, without_requests
from cardiolens.workflow.slurm.model_record import read_model_record
from cardiolens.workflow.slurm.scripts import mark_of
from cardiolens.workflow.slurm.submission import Submission, read_submission
from cardiolens.workflow.steps.closing_progress import read_closing


def status(run: Run) -> int:
    """Print one row per model; 0 if every planned request has a final completion, else 1."""
    spec = documents.read_configuration(run)
    submission = read_submission(run)
    alive = commands.alive(mark_of(run)) if shutil.which("squeue") and submission.jobs else []
    rows = [_progress(run, spec, model, alive, submission) for model in spec.model]
    _show(run, rows)
    for job in alive:
        if not submission.models_of(job.id):
            say(f"job {job.id} {submission.step_of(job.id)} {job.state} {job.where}")
    if (closing := read_closing(run)) is not None:
        say(closing.line(datetime.now(UTC)))
    say(f"page: {run.page}" if run.page.exists() else "no page yet")
    return 0 if all(row.state == "done" and not row.failed for row in rows) else 1


def _progress(
    run: Run, spec: SweepSpec, model: ModelSpec, alive: Sequence[Alive], submission: Submission
) -> ModelProgress:
    group = read_model_record(run.model_records, model.name)
    own_jobs = [job for job in alive if model.name in submission.models_of(job.id)]
    if not run.requests(model.name).is_dir():
        return without_requests(model.name, group, own_jobs)
    store = store_of(run, spec)
    try:
        model_key = _model_key(run, model, store)
    except InputError as error:
        failed = group.model_copy(update={"state": "failed", "reason": str(error)})
        return without_requests(model.name, failed, own_jobs)
    remaining = missing_in(run, store, spec, model.name, model_key)
    written = tables.read(store.completions(model_key), schemas.COMPLETIONS, ("written_at",))
    times = written["written_at"].to_pylist()
    started = group.attempts[-1].started if group.attempts else None
    return progress_of(model.name, remaining, group, own_jobs, rate_of(times, datetime.now(UTC), started))


def _model_key(run: Run, model: ModelSpec, store: Store) -> str:
    """The key of a model: of a finished run as it is recorded, since the model's files may be gone."""
    if run.manifest.exists() and (facts := documents.read_manifest(run)["models"].get(model.name)):
        return str(facts["model_key"])
    return identify(model, store.models).model_key


def _show(run: Run, rows: Sequence[ModelProgress]) -> None:
    table = Table(title=f"status of {run.root}", title_justify="left")
    for name in ("model", "state", "where or why", "done / unique", "failed", "a second", "restarts", "left"):
        table.add_column(name, justify="left" if name in ("model", "state", "where or why") else "right")
    for row in rows:
        time_left = "-" if row.seconds_left is None else str(timedelta(seconds=round(row.seconds_left)))
        rate = f"{row.rate:.1f}" if row.rate else "-"
        cells = (row.model, row.state, row.where, f"{row.done:,} / {row.unique:,}")
        table.add_row(*cells, str(row.failed), rate, str(row.restarts), time_left)
    console.print(table)
