"""The job of one model: complete its missing requests, record the outcome for the next start, and judge."""

import os
import time
from dataclasses import dataclass
from typing import Literal

from cardiolens.base.console import say
from cardiolens.base.counted import counted
from cardiolens.base.errors import InputError, RunError
from cardiolens.config.cluster import SlurmSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.placement.inventory import nodes_of_ray
from cardiolens.inference.plan.candidates import place_sweep
from cardiolens.inference.plan.missing import Missing, missing_of
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.inference.stream.pipeline import Streamed
from cardiolens.runtime import stopping
from cardiolens.runtime.connect import ray_cluster
from cardiolens.runtime.stopping import StoppedError
from cardiolens.score.run_results.scoring import judge_ahead
from cardiolens.storage import tables
from cardiolens.storage.places import Run
from cardiolens.workflow.slurm.attempt import Start, begin, end, given_up_on_error
from cardiolens.workflow.slurm.stage import stage_on_nodes
from cardiolens.workflow.steps.answer import answer
from cardiolens.workflow.upkeep.compact import compact_folder

_MANY_PARTS = 64  # parts of one model; thousands of files slow shared file systems down
_TOLD = "told to stop"
_JOIN_SECONDS = 180.0  # time limit for all nodes of a job to join its Ray cluster


@dataclass(frozen=True, slots=True)
class _Ending:
    """The outcome of one start."""

    outcome: Literal["done", "stopped", "failed"]
    reason: str = ""
    streamed: Streamed | None = None


def run_model(run: Run, spec: SweepSpec, model: str, n_nodes: int) -> int:
    """Complete the missing requests of one model on a Ray cluster of `n_nodes` nodes, then judge them.

    Returns 0 if no request is left, 75 if the job should start again. Any exception before judging ends the
    job for good; the record of the model then gives the reason.
    """
    with stopping.graceful():
        with given_up_on_error(run, model):
            planned = plan(spec, {model})
            code = _run(run, planned, model, n_nodes)
        if code == 0:
            _judge(planned, model)
        return code


def _run(run: Run, planned: Plan, model: str, n_nodes: int) -> int:
    start = Start.of(os.environ, _max_restarts(planned.spec))
    remaining = missing_of(planned, model)
    decision = begin(run, model, start, remaining.done)
    if not decision.go_on:
        raise RunError(decision.reason)
    if decision.bars(start.nodes):
        return stopping.EXIT_CODE
    _merge_parts(planned, model)
    ending = _answer(planned, model, remaining, n_nodes)
    return _close(run, planned, model, start, ending)


def _judge(planned: Plan, model: str) -> None:
    """Judge the completions of a model; a failure here does not fail the job, as the score job judges too."""
    key = planned.identities[model].model_key
    try:
        n_verdicts = judge_ahead(planned.run, planned.store, model, key, planned.spec)
    except (InputError, RunError) as error:
        say(f"{model}: not judged here ({error}); the score job judges it")
    else:
        say(f"{model}: {n_verdicts} verdicts")


def _max_restarts(spec: SweepSpec) -> int:
    return spec.cluster.max_restarts if isinstance(spec.cluster, SlurmSpec) else 0


def _answer(planned: Plan, model: str, remaining: Missing, n_nodes: int) -> _Ending:
    if not remaining.left:
        return _Ending("done")
    try:
        stopping.raise_if_stopping()
        with ray_cluster(planned.spec.cluster):
            stopping.install_handlers()
            _await_nodes(n_nodes)
            stage_on_nodes(planned, model)
            placement = place_sweep(planned, {model: remaining}, nodes_of_ray(planned.spec.cluster))
            executed = answer(planned, placement, {model: remaining})
    except StoppedError:
        return _Ending("stopped", _TOLD)
    except RunError as error:
        return _Ending("failed", str(error))
    if model in executed.failed:  # with keep_going
        return _Ending("failed", executed.failed[model])
    if stopping.stop_requested():
        return _Ending("stopped", _TOLD, executed.streamed.get(model))
    return _Ending("done", "", executed.streamed.get(model))


def _await_nodes(n_nodes: int) -> None:
    """Wait until all nodes have joined the Ray cluster; RunError after _JOIN_SECONDS."""
    import ray

    deadline = time.monotonic() + _JOIN_SECONDS
    while sum(node["Alive"] for node in ray.nodes()) < n_nodes:
        stopping.raise_if_stopping()
        if time.monotonic() > deadline:
            raise RunError(f"not all {n_nodes} nodes joined the Ray cluster within {_JOIN_SECONDS:g} s")
        time.sleep(0.5)


def _close(run: Run, planned: Plan, model: str, start: Start, ending: _Ending) -> int:
    """Record the end and return the exit code; another start retries requests on which the engine failed."""
    after = missing_of(planned, model)
    outcome, reason = ending.outcome, ending.reason
    if not after.left:
        outcome, reason = "done", ""
    elif outcome == "done":
        outcome, reason = "failed", f"the engine failed on {counted(after.left, 'request')}"
    decision = end(
        run, model, start, rows=after.done, outcome=outcome, reason=reason, streamed=ending.streamed
    )
    say(f"{model}: {outcome}{reason and f' ({reason})'}, {after.done} of {after.unique} requests done")
    if not decision.go_on:
        raise RunError(decision.reason)
    if outcome != "done":
        return stopping.EXIT_CODE
    _merge_parts(planned, model)
    return 0


def _merge_parts(planned: Plan, model: str) -> None:
    """Compact the completions of a model if they have more than _MANY_PARTS parts."""
    name = planned.identities[model].model_key
    folder = planned.store.completions(name)
    if len(tables.parts(folder)) > _MANY_PARTS:
        say(str(compact_folder(name, folder)))
