"""Inventory of GPUs: as declared, of this machine, or of a Ray cluster."""

from collections.abc import Sequence

from cardiolens.base.errors import InputError
from cardiolens.config.cluster import ClusterSpec
from cardiolens.inference.placement.footprint import Node
from cardiolens.runtime.nvidia_smi import gib, gpu_rows

_USUAL_GIB = 80.0  # assumed if only the number of GPUs is declared


def nodes_to_plan_with(cluster: ClusterSpec) -> tuple[Node, ...]:
    """Return the declared nodes, else this machine, without connecting to Ray; empty without GPUs."""
    if cluster.gpus is not None:
        memory = cluster.gpu_memory_gib or _USUAL_GIB
        return tuple(Node(f"node-{at}", cluster.gpus, memory) for at in range(1, cluster.nodes + 1))
    memories = gpu_memories_gib()
    if not memories:
        return ()
    return (Node("here", len(memories), cluster.gpu_memory_gib or _smallest(memories, "this machine")),)


def nodes_of_ray(cluster: ClusterSpec) -> tuple[Node, ...]:
    """Return the nodes with GPUs of the connected Ray cluster, named by Ray's node id."""
    import ray

    alive = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("GPU", 0) >= 1]
    return tuple(
        Node(
            node["NodeID"],
            int(node["Resources"]["GPU"]),
            cluster.gpu_memory_gib or _memory_gib(node["NodeID"], node["NodeManagerHostname"]),
        )
        for node in alive
    )


def gpu_memories_gib() -> tuple[float | None, ...]:
    """Return the GiB of each GPU that this process may use, None for one that does not tell."""
    return tuple(gib(total) for (total,) in gpu_rows(("memory.total",)))


def _memory_gib(node: str, host: str) -> float:
    """Return the memory in GiB of a node's smallest GPU, read on that node; InputError if unreadable."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = ray.remote(gpu_memories_gib).options(
        num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
    )
    return _smallest(ray.get(there.remote()), f"node {host}")


def _smallest(memories: Sequence[float | None], place: str) -> float:
    known = [memory for memory in memories if memory]
    if len(known) < max(len(memories), 1):
        raise InputError(
            f"cluster.gpu_memory_gib: {place} has GPUs whose memory cannot be read (nvidia-smi does not tell "
            "it there); declare it, e.g. cluster.gpu_memory_gib=80"
        )
    return min(known)
