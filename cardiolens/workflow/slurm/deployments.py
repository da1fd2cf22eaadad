"""Deployments of a sweep before submission: models with work left, and the GPUs of each."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from cardiolens.base.errors import InputError
from cardiolens.config.cluster import SlurmSpec
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import identify
from cardiolens.inference.placement.estimate import Rates
from cardiolens.inference.placement.footprint import Candidate, Node
from cardiolens.inference.placement.inventory import nodes_to_plan_with
from cardiolens.inference.placement.placement import Deployment, place
from cardiolens.inference.plan.candidates import candidate, needs
from cardiolens.inference.plan.missing import WORK, Missing, missing_of
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.plan.totals import totals_of
from cardiolens.storage.places import Store

_UNPLANNED = Missing(pa.Table.from_pylist([], schema=WORK), unique=1, done=0, exhausted=0)
_MANY_STUDIES = 1_000_000


def deployments_of(spec: SweepSpec, planned: Plan | None, cluster: SlurmSpec) -> tuple[Deployment, ...]:
    """Return one deployment per model with work left, each placed as if the cluster were its own.

    Without a plan, the work of every model counts as unknown. InputError if a model fits nowhere.
    """
    nodes = nodes_to_plan_with(cluster) if cluster.gpus else ()
    rates = Rates(cluster.prefill_rate, cluster.decode_rate)
    deployments = []
    for model in spec.model:
        candidate = _candidate(spec, model, planned, nodes)
        if candidate is None:
            continue
        placement = place(nodes, [candidate], rates)
        if placement.refusals:
            reason = placement.refusals[0].reason
            remedy = "declare cluster.gpus (of a node), gpu_memory_gib and nodes as they are"
            raise InputError(reason if candidate.lacks else f"{reason}; {remedy}")
        deployments.append(placement.waves[0][0])
    return tuple(deployments)


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
