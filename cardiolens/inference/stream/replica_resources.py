"""How the work of a model is divided among replicas, and the Ray resources that these reserve."""

import math
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.inference.placement.placement import Deployment

STUDIES_IN_FLIGHT = 256  # at most, of one replica; fewer where fewer keep it busy
_REQUESTS = 64  # of a block of several studies, at most
_PER_REPLICA = 8  # blocks at least, as far as there are studies: a block cannot move to an idle replica
BLOCK_BYTES = 32 << 20  # of frames, above which what a task has read is passed on as several blocks


def blocks(work: pa.Table, replicas: int, studies_in_flight: int) -> list[pa.Table]:
    """Divide WORK into blocks of studies, in order.

    A study with many requests is a block of its own; a block has at most half of the studies that may be in
    flight at a replica, so that the next block is there when one ends.
    """
    sizes = np.asarray(pc.list_value_length(work["rows"]), np.int64)
    most = min(_REQUESTS, int(sizes.sum()) // (_PER_REPLICA * replicas))
    most_studies = max(1, studies_in_flight // 2)
    first, requests = 0, 0
    divided = []
    for study, size in enumerate(sizes.tolist()):
        if study > first and (requests + size > most or study - first == most_studies):
            divided.append(work.slice(first, study - first))
            first, requests = study, 0
        requests += size
    return [*divided, work.slice(first)]


def most_studies(work: pa.Table, replicas: int, width: int) -> int:
    """Return how many studies one replica may hold; of several replicas, a quarter of its part, at least 2.

    What waits at one replica cannot move to an idle one. Studies that have the `width` requests of an engine
    only together are held together.
    """
    studies: int = work.num_rows
    if replicas == 1:
        return min(STUDIES_IN_FLIGHT, studies)
    requests: int = pc.sum(pc.list_value_length(work["rows"])).as_py()
    fill_an_engine = math.ceil(width * studies / requests)
    return min(STUDIES_IN_FLIGHT, max(2, math.ceil(studies / replicas / 4), fill_an_engine))


def blocks_in_flight(work: Sequence[pa.Table], width: int, most_studies: int) -> int:
    """Return the number of blocks at one replica: enough for twice its requests in flight, at least 2.

    Not more, because a block that waits at one replica cannot move to an idle one.
    """
    requests: int = sum(pc.sum(pc.list_value_length(block["rows"])).as_py() for block in work)
    most: int = max(1, most_studies // max(block.num_rows for block in work))
    return min(most, 1 + math.ceil(2 * width / (requests / len(work))))


Options = dict[str, Any]
"""Options of `map_batches`, or of one actor, by Ray's names."""

_CONTEXT = threading.Lock()  # Ray Data has one current context per process, and each model has a thread


@contextmanager
def reserved(deployment: Deployment, in_flight: int, restarts: int) -> Iterator[Options]:
    """Yield options of `map_batches` with one actor per replica; release placement groups at the end.

    Each actor has `in_flight` blocks in flight and may be restarted `restarts` times.

    For a replica within a node, the actor reserves the GPUs, on the node that the placement chose. For a
    replica that spans nodes, a placement group has one bundle per GPU, which vLLM's Ray executor fills.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    spans: list[Any] = []
    try:
        if deployment.spans_nodes:
            for hosts in deployment.hosts:
                spans.append(_span(deployment, hosts))  # a failure frees the groups that were made before
        # Soft: an actor waits while its node is busy, and moves if it is gone.
        nodes = [NodeAffinitySchedulingStrategy(hosts[0], soft=True) for hosts in deployment.hosts if hosts]
        seats: list[Options] = [{"scheduling_strategy": seat} for seat in spans or nodes] or [{}]
        # By default Ray silently restarts a dying actor for ever. Only restarts are limited, not task
        # retries: until Ray declares a silent node dead, each try counts.
        bounds: Options = {"max_restarts": restarts, "max_task_retries": -1}
        turns = cycle([bounds | seat for seat in seats])
        warnings.filterwarnings("ignore", message="`ray_remote_args_fn` is deprecated")  # gone in 2.64
        yield {
            "compute": ray.data.ActorPoolStrategy(
                size=deployment.replicas,
                max_tasks_in_flight_per_actor=in_flight,
                max_concurrent_calls_per_actor=in_flight,
            ),
            "num_cpus": 0,
            "num_gpus": 0 if spans else deployment.gpus_per_replica,
            "ray_remote_args_fn": lambda: next(turns),  # Ray 2.60's only way to limit restarts, and to seat
        }
    finally:
        for span in spans:
            ray.util.remove_placement_group(span.placement_group)


@contextmanager
def bounded(n_models: int) -> Iterator[None]:
    """Limit the object store of datasets made inside the block, and switch off Ray Data's stall timeout.

    By default each Ray Data execution takes half of the object store, even beside others; here each of
    `n_models` executions gets its part of that half. Ray Data ends an execution that finishes no study for
    half an hour; the stream watches completions instead, which are finer.
    """
    import ray
    from ray.data import DataContext, ExecutionResources

    context = DataContext.get_current().copy()
    store = ray.cluster_resources().get("object_store_memory", 0.0)
    context.execution_options.resource_limits = ExecutionResources.for_limits(
        object_store_memory=store / 2 / n_models
    )
    context.execution_no_progress_timeout_s = -1
    context.target_max_block_size = BLOCK_BYTES
    with _CONTEXT, DataContext.current(context):
        yield


def _span(deployment: Deployment, hosts: tuple[str, ...]) -> Any:
    """Reserve a placement group, one bundle per GPU on each host, in order; return a seat in it.

    The actor itself takes no further GPU.
    """
    import ray
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    nodes = [{"ray.io/node-id": host} for host in hosts for _ in range(deployment.tensor_parallel)]
    reserved_gpus = ray.util.placement_group([{"GPU": 1.0}] * len(nodes), bundle_label_selector=nodes)
    return PlacementGroupSchedulingStrategy(
        reserved_gpus, placement_group_bundle_index=0, placement_group_capture_child_tasks=True
    )
