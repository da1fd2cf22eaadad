"""Inventory of GPUs: as declared, of this machine, or of a Ray cluster."""

import subprocess

from cardiolens.base.errors import InputError
from cardiolens.config.cluster import ClusterSpec
from cardiolens.inference.placement.footprint import Node

_QUERY = ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits")
_USUAL_GIB = 80.0  # assumed if only the number of GPUs is declared


def nodes_to_plan_with(cluster: ClusterSpec) -> tuple[Node, ...]:
    """Return the declared nodes, else this machine, without connecting to Ray; empty without GPUs."""
    if cluster.gpus is not None:
        memory = cluster.gpu_memory_gib or _USUAL_GIB
        return tuple(Node(f"node-{at}", cluster.gpus, memory) for at in range(1, cluster.nodes + 1))
    memories = gpu_memories_gib()
    if not memories:
        return ()
    return (Node("here", len(memories), cluster.gpu_memory_gib or min(memories)),)


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


def gpu_memories_gib() -> tuple[float, ...]:
    """Return the memory in GiB of each GPU of this machine, from its driver; empty without a driver."""
    try:
        output = subprocess.run(_QUERY, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(float(line) / 1024 for line in output.split())


def _memory_gib(node: str, host: str) -> float:
    """Return the memory in GiB of a node's smallest GPU, read on that node; InputError if unreadable."""
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
