"""Submit the missing work of a sweep as SLURM jobs."""

import shutil
from collections.abc import Sequence

from cardiolens.base.console import say, shown_word
from cardiolens.base.errors import InputError, RunError
from cardiolens.config.cluster import SlurmSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.arguments import check_engine_options
from cardiolens.inference.engine.http.access import check_access
from cardiolens.inference.engine.readers import check_readers
from cardiolens.inference.models.identity import identify
from cardiolens.inference.models.thinking import unseparated
from cardiolens.inference.placement.placement import Deployment
from cardiolens.inference.plan.candidates import at_hand
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.inference.plan.plugin_checks import check_plugins
from cardiolens.protocol.select.feature_source import check_encoders
from cardiolens.show.tracker.wandb_runs import check_tracker
from cardiolens.storage import documents, tables
from cardiolens.storage.places import Run, Store, run_of
from cardiolens.study.cohort import read_cohort
from cardiolens.workflow.slurm import commands
from cardiolens.workflow.slurm.commands import Alive
from cardiolens.workflow.slurm.deployments import deployments_of
from cardiolens.workflow.slurm.jobs import Job, jobs_of, short_of_cpus
from cardiolens.workflow.slurm.limits import check_limits
from cardiolens.workflow.slurm.scripts import mark_of, script_of, site_of
from cardiolens.workflow.slurm.show_jobs import show_jobs, show_scripts
from cardiolens.workflow.slurm.submission import queue, read_submission
from cardiolens.workflow.steps.check_release import check_release
from cardiolens.workflow.steps.prepare_studies import is_prepared


def submit(spec: SweepSpec) -> int:
    """Submit jobs for the missing work of a sweep; return 0, also if jobs are alive or nothing is missing."""
    cluster = _checked(spec)
    spec, absent = at_hand(spec)
    for warning in unseparated(spec):
        say(f"check: {warning}")
    for model, why in absent.items():
        say(f"left out: {model}: {why}")
    run = run_of(spec)
    planned = _planned(spec)
    deployments = deployments_of(spec, planned, cluster)
    for warning in short_of_cpus(deployments, cluster.cpus):
        say(f"check: {warning}")
    if spec.mode == "plan":
        jobs = jobs_of(deployments, prepare=planned is None, cpus=cluster.cpus)
        show_jobs(jobs, deployments, cluster, planned=planned is not None)
        _tell_refusal(jobs, cluster)
        site = site_of(cluster)
        show_scripts({job: script_of(job, run, site) for job in jobs})
        return 0
    commands.check_partition(cluster.partition)
    commands.check_partition(cluster.cpu_partition)
    alive = commands.alive(mark_of(run))
    _tell_alive(run, alive)
    deployments = _not_alive(run, deployments, alive)
    if not alive and not deployments and _has_page(planned):
        say(f"nothing is missing; page: {run.page}")
    elif deployments or not alive:
        _queue(spec, run, deployments, alive, planned)
    say(f"run: {run.root}")
    say(f"status: python -m cardiolens.status {shown_word('run', run.root)}")
    return 0


def _tell_refusal(jobs: Sequence[Job], cluster: SlurmSpec) -> None:
    """Say what of these jobs no node has; a plan may be made where there is no SLURM to ask."""
    if shutil.which("sinfo") is None:
        return
    try:
        check_limits(jobs, cluster)
    except (InputError, RunError) as error:
        say(f"check: {error}")


def _checked(spec: SweepSpec) -> SlurmSpec:
    """Run all checks that are possible before jobs wait in a queue, and return the cluster of the sweep."""
    if not isinstance(spec.cluster, SlurmSpec):
        raise InputError("cluster: jobs are submitted to SLURM; add cluster=slurm, or use cardiolens.sweep")
    check_release(spec)
    check_tracker(spec.tracker)
    check_readers(spec)
    check_plugins(spec)
    check_access(spec)
    check_engine_options(spec)
    check_encoders(spec)
    if not spec.keep_going:
        for model in spec.model:
            identify(model, Store(spec.store).models)
    return spec.cluster


def _planned(spec: SweepSpec) -> Plan | None:
    """Return the plan, or None if studies must be prepared first; print studies that failed to prepare."""
    if not is_prepared(spec):
        return None
    cohort = read_cohort(spec.store)
    failed = {} if cohort is None or spec.dataset.prepared_only else cohort.failed
    for study, error in sorted(failed.items()):
        say(f"not prepared: {study}: {error}")
    if failed:
        say(
            "their files are as they were when they failed; python -m cardiolens.prepare ... tries them again"
        )
    planned = plan(spec)
    for model, why in planned.failed.items():
        say(f"left out: {model}: {why}")
    return planned


def _tell_alive(run: Run, alive: Sequence[Alive]) -> None:
    submission = read_submission(run)
    for job in alive:
        models = ", ".join(submission.models_of(job.id))
        say(f"alive: job {job.id} {models} {job.state} {job.where}")


def _not_alive(run: Run, deployments: Sequence[Deployment], alive: Sequence[Alive]) -> tuple[Deployment, ...]:
    """Return the deployments without a live job; none if an unrecorded job of the run is alive."""
    submission = read_submission(run)
    if not all(submission.step_of(job.id) for job in alive):
        return ()
    busy = {model for job in alive for model in submission.models_of(job.id)}
    return tuple(deployment for deployment in deployments if deployment.model not in busy)


def _has_page(planned: Plan | None) -> bool:
    """Return whether the page is newer than every completion part of the run's models."""
    if planned is None or not planned.run.page.exists():
        return False
    folders = [planned.store.completions(identity.model_key) for identity in planned.identities.values()]
    parts = [part.stat().st_mtime for folder in folders for part in tables.parts(folder)]
    return planned.run.page.stat().st_mtime >= max(parts, default=0.0)


def _answered(spec: SweepSpec, planned: Plan | None) -> int | None:
    """Answers of the compared models in the store; None where it is there and the run is not yet planned."""
    if planned is None:
        return None if spec.store.exists() else 0
    return sum(missing_of(planned, name).done for name in spec.compared)


def _queue(
    spec: SweepSpec, run: Run, deployments: Sequence[Deployment], alive: Sequence[Alive], planned: Plan | None
) -> None:
    assert isinstance(spec.cluster, SlurmSpec), "checked"
    jobs = jobs_of(deployments, prepare=planned is None, cpus=spec.cluster.cpus)
    check_limits(jobs, spec.cluster)
    documents.write_configuration(run, spec)
    documents.declare(run, spec, _answered(spec, planned))
    site = site_of(spec.cluster)
    scripts = {job: script_of(job, run, site) for job in jobs}
    for job in queue(run, scripts, sorted({job.id.partition("_")[0] for job in alive})):
        say(f"submitted: job {job.id} {job.step} {', '.join(job.models)}")
