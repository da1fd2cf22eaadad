"""The GPUs that there are: declared, on this machine, or of a Ray cluster."""

import subprocess

from cardiolens.config.cluster import ClusterSpec
from cardiolens.errors import InputError
from cardiolens.placement.footprint import Node

_QUERY = ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits")
_USUAL_GIB = 80.0  # planned with where only the number of GPUs is declared


def nodes_to_plan_with(cluster: ClusterSpec) -> tuple[Node, ...]:
    """The cluster that is declared, else this machine; Ray is not asked."""
    if cluster.gpus is not None:
        memory = cluster.gpu_memory_gib or _USUAL_GIB
        return tuple(Node(f"node-{at}", cluster.gpus, memory) for at in range(1, cluster.nodes + 1))
    here = gpu_memories_gib()
    return (Node("here", len(here), cluster.gpu_memory_gib or min(here)),) if here else ()


def nodes_of_ray(cluster: ClusterSpec) -> tuple[Node, ...]:
    """The nodes with GPUs of the Ray cluster that is connected, by Ray's id."""
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


def gpu_memories_gib() -> tuple[float, ...]:
    """Memory of each GPU of this machine, as its driver says; none without a driver."""
    try:
        said = subprocess.run(_QUERY, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(float(line) / 1024 for line in said.split())


def _memory_gib(node: str, host: str) -> float:
    """The smallest GPU of a node, asked for there."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = ray.remote(gpu_memories_gib).options(
        num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
    )
    memories: tuple[float, ...] = ray.get(there.remote())
    if not memories:
        raise InputError(
            f"cluster.gpu_memory_gib: node {host} has GPUs whose memory cannot be read (nvidia-smi does not "
            "answer there); declare it, e.g. cluster.gpu_memory_gib=80"
        )
    return min(memories)
