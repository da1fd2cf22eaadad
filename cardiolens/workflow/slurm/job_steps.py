"""Execute the step of a sweep that one SLURM job stands for: prepare, model or score."""

from typing import Literal

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.config.base import GivenPath, Positive, Spec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import identify
from cardiolens.inference.placement.placement import Placement
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.stream.execution import Executed
from cardiolens.inference.stream.pipeline import Streamed
from cardiolens.runtime.connect import ray_cluster
from cardiolens.storage import documents
from cardiolens.storage.places import Run, Store, run_of
from cardiolens.storage.run_word import open_run
from cardiolens.study.cohort import read_cohort
from cardiolens.workflow.slurm.attempt import give_up
from cardiolens.workflow.slurm.model_job import run_model
from cardiolens.workflow.slurm.model_record import read_model_record, write_model_record
from cardiolens.workflow.steps.conclude import conclude
from cardiolens.workflow.steps.model_outcomes import Prepared
from cardiolens.workflow.steps.prepare_studies import prepare_sweep


class Words(Spec):
    """Command-line words of a job."""

    run: GivenPath
    step: Literal["prepare", "model", "score"]
    model: str | None = None  # for step=model
    address: str | None = None  # Ray cluster that step=model joins
    nodes: Positive = 1  # nodes of that Ray cluster


def work(words: Words) -> int:
    """Execute the named step of a run and return the exit code."""
    run = open_run("run", words.run)
    spec = documents.as_written(run)
    if run_of(spec).root.resolve() != run.root.resolve():
        raise InputError(
            f"run={run.root}: its configuration is that of {run_of(spec).root}; start the job in the folder "
            "from which it was submitted, or submit it again"
        )
    match words.step:
        case "prepare":
            return prepare_step(run, spec)
        case "model" if words.model in {model.name for model in spec.model}:
            cluster = spec.cluster.model_copy(update={"address": words.address})
            changed = spec.model_copy(update={"cluster": cluster})
            return run_model(run, changed, words.model, words.nodes)
        case "model":
            names = ", ".join(model.name for model in spec.model)
            raise InputError(f"model={words.model}: not a model of this run; choose from {names}")
        case "score":
            return score_step(run, spec)


def prepare_step(run: Run, spec: SweepSpec) -> int:
    """Prepare studies and write the plan; record models that cannot be planned as failed."""
    with ray_cluster(spec.cluster):
        for study, error in prepare_sweep(spec).failed:
            say(f"not prepared: {study}: {error}")
        records, unknown = _known(spec)
        for model, reason in unknown.items():
            give_up(run, model, reason)
        planned = plan(_going_on(spec), records)
        for model, reason in planned.failed.items():
            give_up(run, model, reason)
    say(f"{planned.run.root}: {planned.asked} requests asked, {planned.planned} planned")
    return 0


def score_step(run: Run, spec: SweepSpec) -> int:
    """Judge, score and show all completions; return 0 only if none is missing."""
    known, unknown = _known(spec)
    planned = plan(_going_on(spec), known)
    groups = {model: read_model_record(run.model_records, model) for model in planned.identities}
    executed = Executed(failed={**unknown, **planned.failed})
    for model, group in groups.items():
        seats = frozenset(seat for attempt in group.attempts for seat in attempt.seats)
        executed.streamed[model] = Streamed(group.counters, seats)
        if group.state == "failed":
            executed.failed[model] = group.reason
    remaining = {model: missing_of(planned, model) for model in planned.identities}
    for model, group in groups.items():
        if group.state == "running" and not remaining[model].left:
            # The job was cancelled after its last request, before it could record the end; no other job will.
            write_model_record(run.model_records, group.model_copy(update={"state": "done"}))
    return conclude(planned, _prepared(spec), remaining, Placement((), (), ()), executed)


def _going_on(spec: SweepSpec) -> SweepSpec:
    """Return the sweep with keep_going: a failing model is recorded, and the others have their own jobs."""
    return spec.model_copy(update={"keep_going": True})


def _known(spec: SweepSpec) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the models that can be identified by their files, and the reason for each other model."""
    records, unknown = [], {}
    for model in spec.model:
        try:
            identify(model, Store(spec.store).models)
            records.append(model.name)
        except InputError as error:
            unknown[model.name] = str(error)
    if not records:
        raise InputError(f"no model of this run can be identified: {next(iter(unknown.values()))}")
    return tuple(records), unknown


def _prepared(spec: SweepSpec) -> Prepared:
    """Return the outcome of the preparation job, read from the cohort in the store."""
    cohort = read_cohort(spec.store)
    failed = {} if cohort is None else cohort.failed
    return Prepared(0, 0, tuple(sorted(failed.items())), 0.0, 0)
