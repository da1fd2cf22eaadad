"""`python -m cardiolens.sweep +experiment=...`: prepare what is missing, plan, run, judge, score, record."""

import logging
import sys
import time
from contextlib import ExitStack

from cardiolens import record, show, stopping
from cardiolens.cluster import ray_cluster
from cardiolens.configure import run_verb
from cardiolens.dataset_spec import DatasetSpec
from cardiolens.engine.footprint import Node
from cardiolens.engine.http_access import check_access
from cardiolens.engine.inventory import nodes_of_ray, nodes_to_plan_with
from cardiolens.engine.placement import Placement
from cardiolens.execution import Executed, execute
from cardiolens.judging.text_metrics import open_text_metrics
from cardiolens.page.write import write_page
from cardiolens.phantom.cohort import make_cohort
from cardiolens.placing import at_hand, place_sweep
from cardiolens.plan.missing import Missing, missing
from cardiolens.plan.plan import Plan, plan
from cardiolens.plan.totals import totals_of
from cardiolens.prepare import Prepared, prepare, prepare_features
from cardiolens.scoring import Judged, judge_and_score
from cardiolens.select.sight import check_encoders, sights_of
from cardiolens.show_placement import show_placement
from cardiolens.spec import SweepSpec
from cardiolens.store import run_of
from cardiolens.track import check_tracker, track

log = logging.getLogger(__name__)


def sweep(spec: SweepSpec) -> int:
    """Run a sweep to its end; 0 only if every study was prepared and every planned request has a verdict."""
    spec, absent = at_hand(spec)
    for model, why in absent.items():
        show.say(f"left out: {model}: {why}")
    check_tracker(spec.tracker)
    check_access(spec)
    check_encoders(spec)
    open_text_metrics(spec.statistics)  # so that what they lack is said before anything starts
    record.log_to(run_of(spec))
    with ExitStack() as cluster:
        if (
            not spec.dataset.studies.exists() or not spec.store.exists()
        ):  # much to do: one cluster for all of it
            cluster.enter_context(ray_cluster(spec.cluster))
        prepared = prepare_sweep(spec)
        planned = plan(spec)
        left = {model.name: missing_of(planned, model.name) for model in spec.model}
        if spec.mode == "plan":
            _show_plan(planned, left)
            return 0
        record.write_configuration(planned.run, spec)
        nodes: tuple[Node, ...] = ()
        if any(work.left for work in left.values()):
            cluster.enter_context(ray_cluster(spec.cluster))
            nodes = nodes_of_ray(spec.cluster)
        placement = place_sweep(planned, left, nodes)
        with stopping.graceful():
            executed = execute(planned, placement, left)
            executed.failed |= absent
    stopping.check()
    return conclude(planned, prepared, left, placement, executed)


def prepare_sweep(spec: SweepSpec) -> Prepared:
    """Bring a sweep's dataset and what selectors see of it up to date; a phantom is made at first use."""
    _make_phantom(spec.dataset)
    prepared = prepare(spec.dataset, spec.store, spec.strict, spec.cluster)
    for sight in sights_of(spec):
        prepare_features(spec.store, sight, spec.cluster)
    return prepared


def _make_phantom(dataset: DatasetSpec) -> None:
    """A synthetic dataset is made at first use."""
    if dataset.phantom is not None and not dataset.studies.exists():
        show.say(f"making the phantom cohort {dataset.name} in {dataset.studies.parent}")
        make_cohort(dataset.phantom, dataset.studies.parent, dataset.protocol)


def missing_of(planned: Plan, model: str) -> Missing:
    """What one model of a plan still has to answer."""
    completions = planned.store.completions(planned.identities[model].model_key)
    return missing(planned.run.requests(model), completions, planned.spec.stream.max_attempts)


def _show_plan(planned: Plan, left: dict[str, Missing]) -> None:
    totals = {name: totals_of(planned.run.requests(name)) for name in left}
    show.show_plan(planned, left, totals)
    show_placement(place_sweep(planned, left, nodes_to_plan_with(planned.spec.cluster), totals))


def conclude(
    planned: Plan,
    prepared: Prepared,
    left: dict[str, Missing],
    placement: Placement,
    executed: Executed,
) -> int:
    """Judge, score, write the record, mirror it, and say how it ended."""
    started = time.monotonic()
    keys = {name: identity.model_key for name, identity in planned.identities.items()}
    judged = judge_and_score(planned.run, planned.store, keys, planned.spec)
    seconds = {
        "prepare": prepared.seconds,
        "plan": planned.seconds,
        "load": executed.load_seconds,
        "generate": executed.seconds - executed.load_seconds,
        "judge": time.monotonic() - started,
    }
    unique = sum(work.unique for work in left.values())
    counted = record.counters(planned, unique, executed.counters, judged.replies.counts)
    record.write_manifest(
        planned,
        {
            **counted,
            "placement": record.placed(placement, executed),
            "failed": executed.failed,
            "seconds": {name: round(value, 3) for name, value in seconds.items()},
            "duplicates": judged.replies.duplicates,
            "unrequested": judged.replies.unrequested,
            "questions_digest": judged.replies.questions_digest,
        },
    )
    write_page(planned.run, [planned.run], include_images=planned.spec.page.include_images)
    show.show_scores(planned.arms, judged.scores)
    track(planned.run, planned.spec.tracker)  # last: a server that cannot be reached takes its time
    return _exit_code(planned, prepared, judged, counted["requests"], executed.failed)


def _exit_code(
    planned: Plan, prepared: Prepared, judged: Judged, requests: dict[str, int], failed: dict[str, str]
) -> int:
    show.say(
        f"requests: {requests['asked']} asked, {requests['unique']} unique, {requests['executed']} executed, "
        f"{requests['reused']} reused, {requests['error']} failed, {requests['overflow']} overflow, "
        f"{requests['skipped']} skipped"
    )
    if unfinished := judged.replies.unfinished:
        show.say(f"incomplete: {unfinished} requests have no final completion; run the same command again")
    for study, error in prepared.failed:
        show.say(f"not prepared: {study}: {error}")
    for model, reason in failed.items():
        show.say(f"not run: {model}: {reason}")
    show.say(f"page: {planned.run.page}")
    show.say(f"run: {planned.run.root}")
    return 1 if unfinished or prepared.failed or failed else 0


def main() -> int:
    return run_verb(sweep)


if __name__ == "__main__":
    sys.exit(main())
