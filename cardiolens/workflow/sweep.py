"""Run a sweep in one process: prepare, plan, answer, conclude."""

from contextlib import ExitStack

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.console import say
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.placement.footprint import Node, nodes_of_ray, nodes_to_plan_with
from cardiolens.inference.plan.candidates import place_sweep, totals_of
from cardiolens.inference.plan.missing import Missing, missing_of
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.inference.stream.pipeline import need_no_cluster
from cardiolens.runtime import stopping
from cardiolens.runtime.connect import ray_cluster
from cardiolens.score.statistics.factors import arm_factors
from cardiolens.score.statistics.pooled import power_lines
from cardiolens.show.terminal import show
from cardiolens.show.terminal.show import show_placement
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import run_of
from cardiolens.workflow.steps.conclude import answer, conclude
from cardiolens.workflow.steps.prepare_studies import prepare_sweep
from cardiolens.workflow.sweep_checks import check_sweep


def sweep(spec: SweepSpec) -> int:
    """Run a sweep to its end; 0 only if every study was prepared and every planned request has a verdict.

    Plan mode stops after showing the plan.
    """
    spec, absent = check_sweep(spec)
    documents.log_to(run_of(spec))
    with ExitStack() as cluster:
        if not spec.dataset.studies.exists() or not spec.store.exists():
            # Everything must be prepared: one Ray cluster serves all steps.
            cluster.enter_context(ray_cluster(spec.cluster))
        prepared = prepare_sweep(spec)
        planned = plan(spec)
        remaining = {name: missing_of(planned, name) for name in planned.identities}
        if spec.mode == "plan":
            _show_plan(planned, remaining)
            return 0
        documents.write_configuration(planned.run, spec)
        documents.declare(planned.run, spec, sum(remaining[name].done for name in spec.compared))
        nodes: tuple[Node, ...] = ()
        if any(work.left for work in remaining.values()):
            if need_no_cluster(planned, remaining):
                nodes = nodes_to_plan_with(spec.cluster)
            else:
                cluster.enter_context(ray_cluster(spec.cluster))
                nodes = nodes_of_ray(spec.cluster)
        placement = place_sweep(planned, remaining, nodes)
        with stopping.graceful():
            executed = answer(planned, placement, remaining)
            executed.failed |= {**absent, **planned.failed}
    stopping.raise_if_stopping()
    return conclude(planned, prepared, placement, executed)


def _asked(planned: Plan) -> pa.Table:
    """Return the questions of the first arm; all arms of a plan ask the same."""
    first = planned.arms[0]
    requests = tables.read(planned.run.requests(first.model.name), schemas.REQUESTS, ["arm_id", "qa_id"])
    mine = requests.filter(pc.equal(requests["arm_id"], first.arm_id))["qa_id"]
    columns = ["qa_id", "patient_id", "tier", "answer", "reference"]
    questions = tables.read(planned.store.questions, schemas.QUESTIONS, columns)
    asked = pc.is_in(questions["qa_id"], pc.unique(mine))
    return questions.filter(asked)


def _show_plan(planned: Plan, remaining: dict[str, Missing]) -> None:
    for model, why in planned.failed.items():
        say(f"left out: {model}: {why}")
    totals = {name: totals_of(planned.run.requests(name)) for name in remaining}
    show.show_plan(planned, remaining, totals)
    show.show_power(power_lines(_asked(planned), arm_factors(planned.arms)))
    show_placement(place_sweep(planned, remaining, nodes_to_plan_with(planned.spec.cluster), totals))
