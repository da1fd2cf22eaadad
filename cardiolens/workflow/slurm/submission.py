"""Submit the missing work of a sweep as SLURM jobs: prepare, one job for each model, score."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
from rich.table import Table

from cardiolens.base import disk
from cardiolens.base.console import console, say, shown_word
from cardiolens.base.errors import InputError, RunError
from cardiolens.config.cluster import SlurmSpec
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import identify
from cardiolens.inference.placement.footprint import Candidate, Node, Rates, nodes_to_plan_with
from cardiolens.inference.placement.placement import Deployment, place
from cardiolens.inference.plan.candidates import at_hand, candidate, needs
from cardiolens.inference.plan.missing import WORK, Missing, missing_of
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.inference.plan.totals import totals_of
from cardiolens.storage import documents, tables
from cardiolens.storage.places import Run, Store, run_of
from cardiolens.study.cohort import read_cohort
from cardiolens.workflow.slurm import commands
from cardiolens.workflow.slurm.jobs import Job, jobs_of, mark_of, script_of
from cardiolens.workflow.slurm.records import Queued, read_submission, write_submission
from cardiolens.workflow.steps.prepare_studies import is_prepared
from cardiolens.workflow.sweep_checks import check_sweep

_UNPLANNED = Missing(pa.Table.from_pylist([], schema=WORK), unique=1, done=0, exhausted=0)
_MANY_STUDIES = 1_000_000


def submit(spec: SweepSpec) -> int:
    """Submit jobs for the missing work of a sweep; return 0, also if jobs are alive or nothing is missing."""
    cluster = spec.cluster
    if not isinstance(cluster, SlurmSpec):
        raise InputError("cluster: jobs are submitted to SLURM; add cluster=slurm, or use cardiolens.sweep")
    spec, absent = at_hand(spec)
    check_sweep(spec)
    if not spec.keep_going:
        for model in spec.model:
            identify(model, Store(spec.store).models)
    for name, why in absent.items():
        say(f"left out: {name}: {why}")
    run, planned = run_of(spec), _planned(spec)
    deployments = _deployments(spec, planned, cluster)
    if spec.mode == "plan":
        jobs = jobs_of(deployments, cluster, prepare=planned is None)
        _show(jobs, deployments, cluster, planned=planned is not None)
        for job in jobs:
            for line in ("", f"# ---- {job.name}.sbatch", *script_of(job, run, cluster).splitlines()):
                say(line)
        return 0
    commands.check_partition("partition", cluster.partition, cluster.time)
    commands.check_partition("cpu_partition", cluster.cpu_partition or cluster.partition, cluster.cpu_time)
    alive = {job.id: read_submission(run).find(job.id) for job in _alive(run)}
    busy = {queued.model for queued in alive.values() if queued is not None}
    deployments = [each for each in deployments if each.model not in busy and None not in alive.values()]
    if not alive and not deployments and _has_page(planned):
        say(f"nothing is missing; page: {run.page}")
    elif deployments or not alive:
        _queue(spec, jobs_of(deployments, cluster, prepare=planned is None), [*alive], planned)
    say(f"run: {run.root}")
    say(f"status: python -m cardiolens.status {shown_word('run', run.root)}")
    return 0


def _planned(spec: SweepSpec) -> Plan | None:
    """Return the plan, or None if studies must be prepared first; print studies that failed to prepare."""
    if not is_prepared(spec):
        return None
    cohort = read_cohort(spec.store)
    failed = {} if cohort is None or spec.dataset.prepared_only else cohort.failed
    for study, error in sorted(failed.items()):
        say(f"not prepared: {study}: {error}; python -m cardiolens.prepare ... tries again what has changed")
    planned = plan(spec)
    for model, why in planned.failed.items():
        say(f"left out: {model}: {why}")
    return planned


def _deployments(spec: SweepSpec, planned: Plan | None, cluster: SlurmSpec) -> list[Deployment]:
    """Return one deployment per model with work left, each placed as if the cluster were its own.

    Without a plan, the work of every model counts as unknown. InputError if a model fits nowhere.
    """
    nodes = nodes_to_plan_with(cluster) if cluster.gpus else ()
    deployments = []
    for model in spec.model:
        wanted = _candidate(spec, model, planned, nodes)
        if wanted is None:
            continue
        placement = place(nodes, [wanted], Rates(cluster.prefill_rate, cluster.decode_rate))
        if placement.refusals:
            reason = placement.refusals[0].reason
            remedy = "declare cluster.gpus (of a node), gpu_memory_gib and nodes as they are"
            raise InputError(reason if wanted.lacks else f"{reason}; {remedy}")
        deployments.append(placement.waves[0][0])
    return deployments


def _candidate(
    spec: SweepSpec, model: ModelSpec, planned: Plan | None, nodes: Sequence[Node]
) -> Candidate | None:
    """Return the facts of a model for placement, or None if the model has no work left."""
    occupied = needs(model, nodes, spec.cluster)
    if planned is None:
        folder = identify(model, Store(spec.store).models).folder
        return replace(candidate(model, occupied, folder, _UNPLANNED, None), studies=_MANY_STUDIES)
    if model.name in planned.failed:
        return None
    remaining = missing_of(planned, model.name)
    if not remaining.left:
        return None
    totals = totals_of(planned.run.requests(model.name)) if nodes else None
    return candidate(model, occupied, planned.identities[model.name].folder, remaining, totals)


def _alive(run: Run) -> list[commands.Alive]:
    """Return the live jobs of a run, and print each."""
    alive = commands.alive(mark_of(run))
    for job in alive:
        queued = read_submission(run).find(job.id)
        say(f"alive: job {job.id} {queued.model or queued.step if queued else ''} {job.state} {job.where}")
    return alive


def _has_page(planned: Plan | None) -> bool:
    """Return whether the page is newer than every completion part of the run's models."""
    if planned is None or not planned.run.page.exists():
        return False
    folders = [planned.store.completions(identity.model_key) for identity in planned.identities.values()]
    parts = [part.stat().st_mtime for folder in folders for part in tables.parts(folder)]
    return planned.run.page.stat().st_mtime >= max(parts, default=0.0)


def _queue(spec: SweepSpec, jobs: Sequence[Job], behind: Sequence[str], planned: Plan | None) -> None:
    """Write and queue scripts in order: model jobs wait until preparation succeeds, scoring until all end.

    Scoring also waits for the jobs in `behind`, which are alive already. If SLURM refuses a job, the jobs
    queued before it are cancelled and RunError is raised.
    """
    assert isinstance(spec.cluster, SlurmSpec), "checked"
    run = run_of(spec)
    scripts = {job: script_of(job, run, spec.cluster) for job in jobs}
    answered = None if planned is None and spec.store.exists() else 0
    if planned is not None:
        answered = sum(missing_of(planned, name).done for name in spec.compared)
    documents.write_configuration(run, spec)
    documents.declare(run, spec, answered)
    for job, script in scripts.items():
        disk.write_text(run.jobs / f"{job.name}.sbatch", script)
        commands.rehearse(run.jobs / f"{job.name}.sbatch")
    queued: dict[Job, str] = {}
    try:
        for job in scripts:
            queued[job] = _queue_job(run, job, queued, behind)
    except RunError:
        commands.cancel([*queued.values()])
        raise
    now = datetime.now(UTC)
    write_submission(
        run, [Queued(id=id, step=job.step, model=job.model, submitted=now) for job, id in queued.items()]
    )
    for job, job_id in queued.items():
        say(f"submitted: job {job_id} {job.step} {job.model}".rstrip())


def _queue_job(run: Run, job: Job, queued: Mapping[Job, str], behind: Sequence[str]) -> str:
    prepare = [id for earlier, id in queued.items() if earlier.step == "prepare"]
    models = [id for earlier, id in queued.items() if earlier.step == "model"]
    script = run.jobs / f"{job.name}.sbatch"
    if job.step == "model":
        return commands.submit(script, prepare, on_success=True)
    return commands.submit(script, [*(models or prepare), *behind])


def _show(
    jobs: Sequence[Job], deployments: Sequence[Deployment], cluster: SlurmSpec, *, planned: bool
) -> None:
    """Print one row per job, with GPU hours if the requests are known."""
    by_model = {deployment.model: deployment for deployment in deployments}
    table = Table(title="jobs", title_justify="left")
    for name in ("job", "nodes", "GPUs per node", "CPUs per node", "time limit", "GPU hours", "at most"):
        table.add_column(name, justify="left" if name == "job" else "right")
    for job in jobs:
        hours = ["-", "-"] if not job.gpus else ["unknown", "unknown"]
        if job.gpus and planned:
            of = by_model[job.model]
            hours = [f"{of.gpu_hours:.2g}", f"{of.gpus * of.most_seconds / 3600:.2g}"]
        limit = cluster.time if job.step == "model" else cluster.cpu_time
        table.add_row(job.name, str(job.nodes), str(job.gpus), str(job.cpus), limit, *hours)
    console.print(table)
    if not planned:
        say("GPU hours are not known before the studies are prepared: python -m cardiolens.prepare ...")
