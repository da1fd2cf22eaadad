"""Queue the jobs of a run, and record them beside their scripts."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from cardiolens.base import disk
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.storage.places import Run
from cardiolens.workflow.slurm import commands
from cardiolens.workflow.slurm.jobs import Job, Step


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Queued(_Record):
    """A job that SLURM accepted."""

    id: str
    step: Step
    models: tuple[str, ...]  # one array task per model if there are several
    submitted: datetime


class Submission(_Record):
    """All jobs ever submitted for a run."""

    jobs: tuple[Queued, ...] = ()

    def models_of(self, task: str) -> tuple[str, ...]:
        """Return the models of a job or array task (12_3); empty for other steps."""
        job, index = self._find(task), task.partition("_")[2]
        if job is None:
            return ()
        return (job.models[int(index)],) if index.isdigit() else job.models

    def step_of(self, task: str) -> str:
        """Return the step of a job: prepare, model or score; empty for a job that is not recorded."""
        job = self._find(task)
        return "" if job is None else job.step

    def _find(self, task: str) -> Queued | None:
        """Return the last job with an id: a reinstalled cluster may reuse ids."""
        job = task.partition("_")[0]
        return next((queued for queued in reversed(self.jobs) if queued.id == job), None)


def read_submission(run: Run) -> Submission:
    """Read the submissions of a run, empty if there were none; InputError if the file is not a record."""
    path = run.jobs / "jobs.json"
    try:
        return Submission.model_validate_json(read_bytes(path))
    except FileNotFoundError:
        return Submission()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check it, or delete it") from None
    except ValidationError as error:
        raise InputError(
            f"{path}: not a record of submitted jobs ({error.errors()[0]['msg']}); delete it"
        ) from None


def queue(run: Run, scripts: Mapping[Job, str], behind: Sequence[str]) -> tuple[Queued, ...]:
    """Write and queue scripts in order: model jobs wait until preparation succeeds, scoring until all end.

    Scoring also waits for the jobs in `behind`, which are alive already. If SLURM refuses a job, the jobs
    queued before it are cancelled and RunError is raised.
    """
    paths = {job: _write(run, job, script) for job, script in scripts.items()}
    for path in paths.values():
        commands.rehearse(path)
    queued: list[Queued] = []
    try:
        for job, path in paths.items():
            queued.append(_queue(job, path, queued, behind))
    except RunError:
        commands.cancel([job.id for job in queued])
        raise
    before = read_submission(run).jobs
    record = Submission(jobs=(*before, *queued)).model_dump(mode="json")
    disk.write_text(run.jobs / "jobs.json", json.dumps(record, indent=1) + "\n")
    return tuple(queued)


def _queue(job: Job, path: Path, queued: Sequence[Queued], behind: Sequence[str]) -> Queued:
    prepare = [earlier.id for earlier in queued if earlier.step == "prepare"]
    models = [earlier.id for earlier in queued if earlier.step == "model"]
    if job.step == "model":
        job_id = commands.submit(path, prepare, on_success=True)
    else:
        job_id = commands.submit(path, [*(models or prepare), *behind])
    return Queued(id=job_id, step=job.step, models=job.models, submitted=datetime.now(UTC))


def _write(run: Run, job: Job, script: str) -> Path:
    path = run.jobs / f"{job.name}.sbatch"
    disk.write_text(path, script)
    return path
