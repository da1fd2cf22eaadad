"""Submit the missing work of a sweep as SLURM jobs: prepare, one job for each model, score."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cardiolens.base import disk
from cardiolens.base.console import say, shown_word
from cardiolens.base.errors import InputError, RunError
from cardiolens.config.cluster import SlurmSpec
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import identify
from cardiolens.inference.placement.footprint import Candidate, Node, nodes_to_plan_with
from cardiolens.inference.placement.placement import Placement, Wave, place
from cardiolens.inference.plan.candidates import candidate, candidates_of, needs
from cardiolens.inference.plan.missing import WORK, Missing, missing_of
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.show.terminal.show import show_placement
from cardiolens.storage import documents, tables
from cardiolens.storage.places import Run, Store, run_of
from cardiolens.study.cohort import read_cohort
from cardiolens.workflow.slurm import commands
from cardiolens.workflow.slurm.jobs import Job, jobs_of, script_of
from cardiolens.workflow.steps.prepare_studies import is_prepared
from cardiolens.workflow.sweep_checks import check_sweep

_UNPLANNED = Missing(WORK.empty_table(), unique=1, done=0, exhausted=0)
_MANY_STUDIES = 1_000_000


def submit(spec: SweepSpec) -> int:
    """Submit jobs for the missing work of a sweep; return 0, also if jobs are alive or nothing is missing."""
    cluster = spec.cluster
    if not isinstance(cluster, SlurmSpec):
        raise InputError("cluster: jobs are submitted to SLURM; add cluster=slurm, or use cardiolens.sweep")
    if taken := {"prepare", "score"} & {model.name for model in spec.model}:
        raise InputError(f"model {min(taken)}: a job of each run has this name; give the model another one")
    spec, _ = check_sweep(spec)
    run, planned = run_of(spec), _planned(spec)
    remaining = {name: missing_of(planned, name) for name in planned.identities} if planned else {}
    placement = _place(spec, planned, remaining)
    if spec.mode == "plan":
        _show(run, placement, cluster, planned)
        return 0
    commands.check_partitions(cluster)
    alive = {job.name: job for job in commands.alive(run)}
    for job in alive.values():
        say(f"alive: job {job.id} {job.name} {job.state} {job.where}")
    waiting = [each for each in placement.deployments if each.model not in alive]
    if waiting or ("score" not in alive and (alive or not _has_page(planned))):
        jobs = jobs_of(waiting, prepare=planned is None and "prepare" not in alive)
        ids = {name: job.id for name, job in alive.items()}
        _queue(spec, cluster, jobs, ids, _answered(spec, planned, remaining))
    elif not alive:
        say(f"nothing is missing; page: {run.page}")
    say(f"run: {run.root}")
    say(f"status: python -m cardiolens.status {shown_word('run', run.root)}")
    return 0


def _planned(spec: SweepSpec) -> Plan | None:
    """Return the plan, or None if studies must be prepared first; print studies that failed to prepare."""
    if not is_prepared(spec):
        return None
    cohort = read_cohort(spec.store)
    failed = {} if cohort is None or "absent_studies" in spec.dataset.allow else cohort.failed
    for study, error in sorted(failed.items()):
        say(f"not prepared: {study}: {error}; python -m cardiolens.prepare ... tries again what has changed")
    planned = plan(spec)
    for model, why in planned.failed.items():
        say(f"left out: {model}: {why}")
    return planned


def _place(spec: SweepSpec, planned: Plan | None, remaining: Mapping[str, Missing]) -> Placement:
    """Place each model with work left as if the cluster were its own; InputError if one fits nowhere.

    Without a plan, the work of every model counts as unknown.
    """
    nodes = nodes_to_plan_with(spec.cluster) if spec.cluster.gpus else ()
    if planned is None:
        candidates = [_unplanned(model, spec, nodes) for model in spec.model]
    else:
        candidates = candidates_of(planned, remaining, nodes)
    waves: list[Wave] = []
    for model in candidates:
        placement = place(nodes, [model])
        for reason in placement.refusals.values():
            remedy = "declare cluster.gpus (of a node), gpu_memory_gib and nodes as they are"
            raise InputError(reason if model.lacks else f"{reason}; {remedy}")
        waves += placement.waves
    return Placement(nodes, tuple(waves))


def _unplanned(model: ModelSpec, spec: SweepSpec, nodes: Sequence[Node]) -> Candidate:
    """Return the facts of a model with unknown work."""
    folder, occupied = identify(model, Store(spec.store).models).folder, needs(model, nodes, spec.cluster)
    return replace(candidate(model, occupied, folder, _UNPLANNED, None), studies=_MANY_STUDIES)


def _has_page(planned: Plan | None) -> bool:
    """Return whether the page is newer than the plan and all completions of the run's models."""
    if planned is None or not planned.run.page.exists():
        return False
    parts = (
        part.stat().st_mtime
        for name, identity in planned.identities.items()
        for folder in (planned.run.requests(name), planned.store.completions(identity.model_key))
        for part in tables.parts(folder)
    )
    return planned.run.page.stat().st_mtime >= max(parts, default=0.0)


def _answered(spec: SweepSpec, planned: Plan | None, remaining: Mapping[str, Missing]) -> int | None:
    """Return the number of answers of the compared models in the store; None if it is not known."""
    if planned is None:
        return None if spec.store.exists() else 0
    return sum(remaining[name].done for name in spec.compared)


def _queue(
    spec: SweepSpec, cluster: SlurmSpec, jobs: Sequence[Job], alive: Mapping[str, str], answered: int | None
) -> None:
    """Write and queue scripts in order: model jobs wait until preparation succeeds, scoring until all end.

    `alive` are the ids of jobs that were queued before, by name. If SLURM refuses a job, the jobs queued
    before it are cancelled and RunError is raised.
    """
    run = run_of(spec)
    scripts = {run.jobs / f"{job.name}.sbatch": script_of(job, run, cluster) for job in jobs}
    documents.write_configuration(run, spec)
    documents.declare(run, spec, answered)
    for path, script in scripts.items():
        disk.write_text(path, script)
        commands.execute("sbatch", "--test-only", str(path))
    ids = dict(alive)
    try:
        for job, path in zip(jobs, scripts, strict=True):
            is_model = job.step == "model"
            after = [id for name, id in ids.items() if name == "prepare" or not is_model]
            ids[job.name] = commands.submit(path, after, on_success=is_model)
    except RunError:  # a job may be queued although sbatch failed
        if new := [job.id for job in commands.alive(run) if job.id not in alive.values()]:
            commands.execute("scancel", *new)
        raise
    for job in jobs:
        say(f"submitted: job {ids[job.name]} {job.step} {job.model}".rstrip())


def _show(run: Run, placement: Placement, cluster: SlurmSpec, planned: Plan | None) -> None:
    """Print the placement of each model, with GPU hours if the requests are known, and every script."""
    show_placement(placement)
    if planned is None:
        say("GPU hours are not known before the studies are prepared: python -m cardiolens.prepare ...")
    for job in jobs_of(placement.deployments, prepare=planned is None):
        for line in ("", f"# ---- {job.name}.sbatch", *script_of(job, run, cluster).splitlines()):
            say(line)
