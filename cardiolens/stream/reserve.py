"""What Ray is told about the replicas of a model: their GPUs, their nodes, and how often they may restart."""

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING, TypedDict

from cardiolens.config.steps import StreamSpec
from cardiolens.placement.placement import Deployment

if TYPE_CHECKING:
    from ray.data import ActorPoolStrategy
    from ray.util.scheduling_strategies import (
        NodeAffinitySchedulingStrategy,
        PlacementGroupSchedulingStrategy,
    )


class Seat(TypedDict, total=False):
    """What Ray is asked for when one actor starts."""

    scheduling_strategy: "NodeAffinitySchedulingStrategy | PlacementGroupSchedulingStrategy"
    max_restarts: int
    max_task_retries: int


class Places(TypedDict):
    """Arguments of `map_batches`: how many actors, what each reserves, and where it stands."""

    compute: "ActorPoolStrategy"
    num_cpus: float
    num_gpus: float
    ray_remote_args_fn: Callable[[], Seat]


_CONTEXT = threading.Lock()  # Ray Data's current context is one a process, and models have a thread each


@contextmanager
def reserved(deployment: Deployment, stream: StreamSpec) -> Iterator[Places]:
    """Arguments of `map_batches` for an actor a replica; what is reserved for it is given back at the end.

    Within a node a replica's GPUs are reserved by the actor itself, which stands on the node that the
    placement chose. A replica that spans nodes stands in a placement group with one bundle per GPU, which
    the Ray executor of vLLM fills.
    """
    import ray

    spans = [_span(deployment, hosts) for hosts in deployment.hosts] if deployment.spans_nodes else []
    seats: list[Seat] = spans or [_on_node(hosts[0]) if hosts else {} for hosts in deployment.hosts]
    try:
        yield {
            "compute": ray.data.ActorPoolStrategy(
                size=deployment.replicas,
                max_tasks_in_flight_per_actor=stream.studies_in_flight,
                max_concurrent_calls_per_actor=stream.studies_in_flight,
            ),
            "num_cpus": 0,
            "num_gpus": 0 if spans else deployment.gpus_per_replica,
            "ray_remote_args_fn": _in_turn(seats, stream.engine_restarts),
        }
    finally:
        for span in spans:
            ray.util.remove_placement_group(span["scheduling_strategy"].placement_group)


@contextmanager
def bounded(beside: int) -> Iterator[None]:
    """Datasets made within keep to their part of the object store, and are not watched by Ray Data.

    Executions side by side do not know of each other; each would take half of the store. Ray Data ends one
    in which no study was finished for half an hour; the stream watches completions, which is finer.
    """
    import ray
    from ray.data import DataContext, ExecutionResources

    context = DataContext.get_current().copy()
    store = ray.cluster_resources().get("object_store_memory", 0.0)
    context.execution_options.resource_limits = ExecutionResources.for_limits(
        object_store_memory=store / 2 / beside
    )
    context.execution_no_progress_timeout_s = -1
    with _CONTEXT, DataContext.current(context):
        yield


def _in_turn(seats: list[Seat], restarts: int) -> Callable[[], Seat]:
    """What Ray Data asks for at each actor that it starts: one seat after another, restarts bounded.

    Ray's own default restarts a dying actor for ever, silently. Ray 2.60 has no other way to bound it, nor to
    put actors of one pool on different nodes, and warns that it will have one in 2.64.
    """
    warnings.filterwarnings("ignore", message="`ray_remote_args_fn` is deprecated")
    bounds: Seat = {"max_restarts": restarts, "max_task_retries": restarts}
    turns = cycle([bounds | seat for seat in seats])
    return lambda: next(turns)


def _on_node(node: str) -> Seat:
    """Soft: waits while the node is busy, and stands elsewhere when it is gone."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=True)}


def _span(deployment: Deployment, hosts: tuple[str, ...]) -> Seat:
    """A bundle a GPU on each of these nodes, in their order; the actor itself takes no GPU beside them."""
    import ray
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    nodes = [{"ray.io/node-id": host} for host in hosts for _ in range(deployment.tensor_parallel)]
    reserved_gpus = ray.util.placement_group([{"GPU": 1.0}] * len(nodes), bundle_label_selector=nodes)
    strategy = PlacementGroupSchedulingStrategy(
        reserved_gpus, placement_group_bundle_index=0, placement_group_capture_child_tasks=True
    )
    return {"scheduling_strategy": strategy}
