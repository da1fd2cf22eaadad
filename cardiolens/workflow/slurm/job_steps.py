"""The work of one SLURM job: prepare the studies, complete the requests of one model, or score."""

import os
import time
from datetime import UTC, datetime

from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.phrasing import counted
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.placement.footprint import nodes_of_ray
from cardiolens.inference.placement.placement import Placement
from cardiolens.inference.plan.candidates import place_sweep
from cardiolens.inference.plan.missing import Missing, missing_of
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.inference.stream.execution import Executed
from cardiolens.inference.stream.pipeline import Streamed
from cardiolens.runtime import stopping
from cardiolens.runtime.connect import ray_cluster
from cardiolens.runtime.stopping import StoppedError
from cardiolens.storage import tables
from cardiolens.storage.places import Run
from cardiolens.study.cohort import read_cohort
from cardiolens.workflow.slurm import records
from cardiolens.workflow.slurm.records import Attempt, Outcome
from cardiolens.workflow.steps.conclude import answer, conclude
from cardiolens.workflow.steps.preparation import Prepared
from cardiolens.workflow.steps.prepare_studies import prepare_sweep
from cardiolens.workflow.upkeep import compact_folder

_MANY_PARTS = 64  # parts of one model; thousands of files slow shared file systems down
_JOIN_SECONDS = 180.0  # time limit for all nodes of a job to join its Ray cluster


def prepare_step(run: Run, spec: SweepSpec) -> int:
    """Prepare studies and write the plan; record models that cannot be planned as failed."""
    with ray_cluster(spec.cluster):
        for study, error in sorted(prepare_sweep(spec).failed.items()):
            say(f"not prepared: {study}: {error}")
        planned = plan(spec)
        for model, reason in planned.failed.items():
            records.give_up(run, model, reason)
    say(f"{planned.run.root}: {planned.asked} requests asked, {planned.planned} planned")
    return 0


def score_step(run: Run, spec: SweepSpec) -> int:
    """Judge, score and show all completions; return 0 only if none is missing."""
    planned = plan(spec)
    executed = Executed(failed=dict(planned.failed))
    for model in planned.identities:
        record = records.read_model_record(run, model)
        executed.streamed[model] = record.streamed
        if record.state == "failed":
            executed.failed[model] = record.reason
    cohort = read_cohort(spec.store)
    prepared = Prepared(dict(cohort.studies), dict(cohort.failed)) if cohort else Prepared({}, {})
    return conclude(planned, prepared, Placement((), ()), executed)


def run_model(run: Run, spec: SweepSpec, model: str, n_nodes: int) -> int:
    """Complete the missing requests of one model on a Ray cluster of `n_nodes` nodes.

    Returns 0 if no request is left, 75 if the job should start again. Any exception ends the job for good;
    the record of the model then gives the reason.
    """
    with stopping.graceful():
        try:
            planned = plan(spec, {model})
            return _run(run, planned, model, n_nodes)
        except Exception as error:
            is_plain = isinstance(error, InputError | RunError)  # another message may name a patient
            reason = str(error) if is_plain else f"{type(error).__name__}; see the output of the job"
            records.give_up(run, model, reason)
            raise


def _run(run: Run, planned: Plan, model: str, n_nodes: int) -> int:
    remaining = missing_of(planned, model)
    job = os.environ.get("SLURM_JOB_ID", f"process-{os.getpid()}")
    nodes = os.environ.get("SLURM_JOB_NODELIST", os.uname().nodename)
    start = Attempt(job=job, nodes=nodes, started=datetime.now(UTC), rows_before=remaining.done)
    records.begin(run, model, start)
    _merge_parts(planned, model)
    outcome, reason, streamed = _answer(planned, model, remaining, n_nodes)
    after = missing_of(planned, model)
    if not after.left:
        outcome, reason = "done", ""
    elif outcome == "done":
        outcome, reason = "failed", f"the engine failed on {counted(after.left, 'request')}"
    say(f"{model}: {outcome}{reason and f' ({reason})'}, {after.done} of {after.unique} requests done")
    records.end(run, model, rows=after.done, outcome=outcome, reason=reason, streamed=streamed)
    if outcome != "done":
        return stopping.EXIT_CODE
    _merge_parts(planned, model)
    return 0


def _answer(
    planned: Plan, model: str, remaining: Missing, n_nodes: int
) -> tuple[Outcome, str, Streamed | None]:
    """Answer what is left of a model; return how that ended, why, and what was counted."""
    if not remaining.left:
        return "done", "", None
    try:
        stopping.raise_if_stopping()
        with ray_cluster(planned.spec.cluster):
            stopping.install_handlers()
            _await_nodes(n_nodes)
            placement = place_sweep(planned, {model: remaining}, nodes_of_ray(planned.spec.cluster))
            executed = answer(planned, placement, {model: remaining})
    except (StoppedError, RunError) as error:
        return "stopped" if isinstance(error, StoppedError) else "failed", str(error), None
    reason = executed.failed.get(model, "")  # with keep_going
    ending: Outcome = "failed" if reason else "stopped" if stopping.stop_requested() else "done"
    return ending, reason, executed.streamed.get(model)


def _await_nodes(n_nodes: int) -> None:
    """Wait until all nodes have joined the Ray cluster; RunError after _JOIN_SECONDS."""
    import ray

    deadline = time.monotonic() + _JOIN_SECONDS
    while sum(node["Alive"] for node in ray.nodes()) < n_nodes:
        stopping.raise_if_stopping()
        if time.monotonic() > deadline:
            raise RunError(f"not all {n_nodes} nodes joined the Ray cluster within {_JOIN_SECONDS:g} s")
        time.sleep(0.5)


def _merge_parts(planned: Plan, model: str) -> None:
    """Compact the completions of a model if they have more than _MANY_PARTS parts."""
    name = planned.identities[model].model_key
    folder = planned.store.completions(name)
    if len(tables.parts(folder)) > _MANY_PARTS:
        say(str(compact_folder(name, folder)))
