"""GPUs that one replica of a model needs: one, several of a node, or several nodes; and how long it works."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cardiolens.base.errors import InputError
from cardiolens.config.cluster import ClusterSpec
from cardiolens.runtime.nvidia_smi import Gpu, gpus

COMFORT = 0.6  # preferred largest part of the engine's memory for weights; the rest is for the KV cache
LIMIT = 0.85  # largest part for weights if no larger tensor parallel size is legal

Needs = Literal["gpu", "processor", "network"]
"""The resource that a model occupies while it runs."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster, real or assumed by a plan."""

    name: str
    gpus: int
    gpu_memory_gib: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model with work left: the facts that decide its placement."""

    name: str
    needs: Needs
    weight_gib: float = 0.0  # all weights, as served
    billions: float = 0.0  # active parameters, for the time estimate
    heads: int | None = None  # attention heads; must be divisible by the tensor parallel size
    tensor_parallel: int | None = None  # None: derived, as is the next
    replicas: int | None = None
    utilization: float = 0.9  # part of a GPU's memory for the engine
    studies: int = 1  # studies with work left; more replicas than studies would idle
    prompt_tokens: int = 0
    output_tokens: int = 0
    computed_tokens: int | None = None  # prompt tokens that no earlier prompt has computed; None: unknown
    encoder_tokens: int = 0  # tokens of the frames, each encoded once
    reply_tokens: int | None = None  # that replies are expected to have; None: as many as they may
    lacks: str = ""  # why the model can run on no cluster; empty if it can


@dataclass(frozen=True, slots=True)
class Footprint:
    """One way to run one replica."""

    tensor_parallel: int
    pipeline_parallel: int  # number of nodes that the replica spans
    nodes: tuple[str, ...]  # names of the nodes on which the replica fits
    reason: str

    @property
    def gpus(self) -> int:
        return self.tensor_parallel * self.pipeline_parallel


def footprints(candidate: Candidate, nodes: Sequence[Node]) -> tuple[Footprint, ...]:
    """Return the ways to run one replica, the best first; empty if the cluster is too small.

    A way is the best one of some node, and its nodes are all on which it fits: nodes differ. Tensor
    parallelism stays within a node. Pipeline parallelism spans nodes only if no node fits the weights.
    """
    best = {node: way for node in nodes if (way := _best_on(candidate, node)) is not None}
    within = [
        Footprint(
            size,
            1,
            tuple(
                node.name
                for node, (own_tight, own_size) in best.items()
                if own_size <= size <= node.gpus and own_tight <= tight
            ),
            _reason(candidate, size, tight=tight),
        )
        for tight, size in sorted(set(best.values()))
    ]
    return tuple(within or _spanning(candidate, nodes))


def refusal(candidate: Candidate, nodes: Sequence[Node]) -> str:
    """Return why a model fits on no node, and the remedy."""
    most = max((node.gpus for node in nodes), default=0)
    if not most:
        return f"{candidate.name} needs a GPU, and the cluster has none"
    degree = candidate.tensor_parallel
    if degree is not None and not _divides(degree, candidate):
        return (
            f"tensor_parallel {degree} of {candidate.name} does not divide its {candidate.heads} attention "
            "heads; choose a divisor or auto"
        )
    if degree is not None and degree > most:
        return (
            f"tensor_parallel {degree} of {candidate.name} is more than the {most} GPUs of the largest node; "
            "choose less or auto"
        )
    sizes = ", ".join(f"{node.gpus} x {node.gpu_memory_gib:g} GiB" for node in nodes)
    return (
        f"{candidate.name} has {candidate.weight_gib:g} GiB of weights, more than the GPUs it may use "
        f"together hold ({sizes}; {LIMIT * candidate.utilization:.0%} of each may hold weights); add GPUs, "
        "quantize it, or leave it out"
    )


def _best_on(candidate: Candidate, node: Node) -> tuple[bool, int] | None:
    """Return whether little room to batch is left, and the tensor parallel size; None if it does not fit."""
    usable = node.gpu_memory_gib * candidate.utilization
    sizes = _sizes(candidate, node.gpus)
    if candidate.tensor_parallel is None:
        roomy = [size for size in sizes if candidate.weight_gib / size <= COMFORT * usable]
        if roomy:
            return False, roomy[0]
    if not sizes or candidate.weight_gib / sizes[-1] > LIMIT * usable:
        return None
    return candidate.tensor_parallel is None, sizes[-1]


def _reason(candidate: Candidate, size: int, *, tight: bool) -> str:
    if candidate.tensor_parallel is not None:
        return "tensor parallel declared"
    gpus = "one GPU" if size == 1 else f"{size} GPUs"
    room = "little room" if tight else "room"
    return f"{candidate.weight_gib:.3g} GiB of weights on {gpus} leave {room} to batch"


def _spanning(candidate: Candidate, nodes: Sequence[Node]) -> list[Footprint]:
    """Return the footprint over the fewest nodes that hold the weights, one pipeline stage per node."""
    largest = sorted(nodes, key=lambda node: (-node.gpus * node.gpu_memory_gib, node.name))
    for stages in range(2, len(nodes) + 1):
        sizes = _sizes(candidate, min(node.gpus for node in largest[:stages]))
        memory = min(node.gpu_memory_gib for node in largest[:stages])
        room = LIMIT * memory * candidate.utilization
        if candidate.weight_gib and sizes and candidate.weight_gib / (sizes[-1] * stages) <= room:
            alike = [node for node in largest if node.gpus >= sizes[-1] and node.gpu_memory_gib >= memory]
            reason = (
                f"{candidate.weight_gib:.3g} GiB of weights exceed every node: {stages} nodes, a stage each"
            )
            return [Footprint(sizes[-1], stages, tuple(node.name for node in alike), reason)]
    return []


def _sizes(candidate: Candidate, gpus: int) -> list[int]:
    """Return legal tensor parallel sizes on a node: the declared size, else powers of two.

    Each divides the number of attention heads.
    """
    declared = candidate.tensor_parallel
    sizes = [1 << power for power in range(gpus.bit_length())] if declared is None else [declared]
    return [size for size in sizes if size <= gpus and _divides(size, candidate)]


def _divides(size: int, candidate: Candidate) -> bool:
    return candidate.heads is None or candidate.heads % size == 0


REPLY_SHARE = 0.4
"""Expected length of a free reply, as a share of the tokens that it may have: an assumption. Public
measurements have .06, .24, .42 and .76 for four models that described photographs in at most 256 tokens
(bayis.co.uk, "Model Choice Determines VLM Inference Cost")."""

CHOICE_TOKENS = 4
"""Expected length of a reply that is an option: a letter and the end, or a few letters."""


# Rates of one GPU: assumptions for a data-centre GPU of the 80 GiB class, not measurements.
PREFILL = 80_000.0  # prompt tokens per second x billions of active parameters
DECODE = 16_000.0  # output tokens per second x billions of active parameters, batched
LOAD_SECONDS = 60.0  # per engine start, without reading the weights
LOAD_GIB_PER_SECOND = 1.0
ENCODER_BILLIONS = 0.675  # parameters of Qwen2.5-VL's vision encoder, by vLLM's recipes
PATCHES = 4.0  # that the encoder reads per token of a frame: Qwen, Gemma 3 and InternVL merge 2 x 2


def work_seconds(candidate: Candidate) -> float:
    """Return one GPU's expected seconds for the remaining work: beginnings and frames computed once."""
    if candidate.computed_tokens is None:
        return most_seconds(candidate)
    replies = candidate.output_tokens if candidate.reply_tokens is None else candidate.reply_tokens
    encoding = candidate.encoder_tokens * PATCHES * ENCODER_BILLIONS / PREFILL
    return _seconds(candidate, candidate.computed_tokens, replies) + encoding


def most_seconds(candidate: Candidate) -> float:
    """Return one GPU's seconds for the remaining work at most: no cached prefixes, full replies."""
    return _seconds(candidate, candidate.prompt_tokens, candidate.output_tokens)


def _seconds(candidate: Candidate, prompt_tokens: int, output_tokens: int) -> float:
    return candidate.billions * (prompt_tokens / PREFILL + output_tokens / DECODE)


def load_seconds(candidate: Candidate) -> float:
    """Return the seconds of one engine start; 0 without GPUs."""
    if candidate.needs != "gpu":
        return 0.0
    return LOAD_SECONDS + candidate.weight_gib / LOAD_GIB_PER_SECOND


_USUAL_GIB = 80.0  # assumed if only the number of GPUs is declared


def nodes_to_plan_with(cluster: ClusterSpec) -> tuple[Node, ...]:
    """Return the declared nodes, else this machine, without connecting to Ray; empty without GPUs."""
    if cluster.gpus is not None:
        memory = cluster.gpu_memory_gib or _USUAL_GIB
        return tuple(Node(f"node-{at}", cluster.gpus, memory) for at in range(1, cluster.nodes + 1))
    here = gpus()
    if not here:
        return ()
    return (Node("here", len(here), cluster.gpu_memory_gib or _smallest(here, "this machine")),)


def nodes_of_ray(cluster: ClusterSpec) -> tuple[Node, ...]:
    """Return the nodes with GPUs of the connected Ray cluster, named by Ray's node id."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def memory_gib(node: str, host: str) -> float:
        on_node = NodeAffinitySchedulingStrategy(node, soft=False)
        there = ray.remote(gpus).options(num_cpus=0, scheduling_strategy=on_node)
        return _smallest(ray.get(there.remote()), f"node {host}")

    alive = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("GPU", 0) >= 1]
    return tuple(
        Node(
            node["NodeID"],
            int(node["Resources"]["GPU"]),
            cluster.gpu_memory_gib or memory_gib(node["NodeID"], node["NodeManagerHostname"]),
        )
        for node in alive
    )


def _smallest(listed: Sequence[Gpu], place: str) -> float:
    """Return the memory of the smallest GPU of a place; InputError if one does not report it."""
    readable = [gpu.total_gib for gpu in listed if gpu.total_gib]
    if len(readable) < max(len(listed), 1):
        raise InputError(
            f"cluster.gpu_memory_gib: {place} has GPUs of unknown memory (nvidia-smi does not say "
            "it there); declare it, e.g. cluster.gpu_memory_gib=80"
        )
    return min(readable)
