"""GPUs that one replica of a model needs: a share of one, several of a node, or several nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cardiolens.base.errors import InputError
from cardiolens.config.cluster import ClusterSpec
from cardiolens.runtime.nvidia_smi import gib, gpu_rows

COMFORT = 0.6  # preferred largest part of the engine's memory for weights; the rest is for the KV cache
LIMIT = 0.85  # largest part for weights if no larger tensor parallel size is legal
SHARES = (0.25, 0.5)  # of a GPU, for models that leave most of it empty

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
    tensor_parallel: int | None = None  # None: derived, as are the next two
    replicas: int | None = None
    fraction: float | None = None  # of one GPU
    utilization: float = 0.9  # part of a GPU's memory for the engine
    studies: int = 1  # studies with work left; more replicas than studies would idle
    requests: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    computed_tokens: int | None = None  # prompt tokens that no earlier prompt has computed; None: unknown
    encoder_tokens: int = 0  # tokens of the frames, each encoded once
    reply_tokens: int | None = None  # that replies are expected to have; None: as many as they may
    lacks: str = ""  # why the model can run on no cluster; empty if it can


@dataclass(frozen=True, slots=True)
class Footprint:
    """One way to run one replica."""

    tensor_parallel: int = 1
    pipeline_parallel: int = 1  # number of nodes that the replica spans
    least_share: float = 1.0  # of each GPU; below 1, other models may share the GPU
    grows: bool = True  # the share grows to the whole GPU if no other model uses it
    nodes: tuple[int, ...] = ()  # indices of the nodes on which the replica fits
    reason: str = ""
    tight: bool = False  # little memory is left besides the weights

    @property
    def gpus(self) -> int:
        return self.tensor_parallel * self.pipeline_parallel


def footprints(candidate: Candidate, nodes: Sequence[Node]) -> tuple[Footprint, ...]:
    """Return every way to run one replica, the fewest GPUs first; empty if the cluster is too small.

    A way is the best one of some node, and its nodes are all on which it fits: nodes differ. Tensor
    parallelism stays within a node. Pipeline parallelism spans nodes only if no node fits the weights.
    """
    best = {place: way for place, node in enumerate(nodes) if (way := _within(candidate, node)) is not None}
    ways = {way[:3]: way for way in reversed(best.values())}  # with the reason of the first such node
    within = [
        Footprint(
            tensor_parallel=way.size,
            least_share=way.share,
            grows=candidate.fraction is None,
            nodes=tuple(place for place, own in best.items() if way.fits(own, nodes[place])),
            reason=way.reason,
            tight=way.tight,
        )
        for _, way in sorted(ways.items())
    ]
    return tuple(within or _spanning(candidate, nodes))


class _Way(NamedTuple):
    """One way to run a replica within a node; better ways sort first."""

    tight: bool  # little memory is left besides the weights
    size: int  # tensor parallel size
    share: float  # the least share of each GPU
    reason: str

    def fits(self, own: "_Way", node: Node) -> bool:
        """Return whether it leaves no less room on a node than `own`, the best way there, does."""
        smaller = (own.size, own.share) <= (self.size, self.share)
        return smaller and own.tight <= self.tight and self.size <= node.gpus


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


def _within(candidate: Candidate, node: Node) -> _Way | None:
    """Return the best way to run a replica on one node; None if the replica does not fit."""
    usable = node.gpu_memory_gib * candidate.utilization
    weight, size = candidate.weight_gib, candidate.tensor_parallel
    if candidate.fraction is not None:
        fits = node.gpus > 0 and weight <= LIMIT * usable * candidate.fraction
        return (
            _Way(False, 1, candidate.fraction, f"fraction {candidate.fraction:g} declared") if fits else None
        )
    sizes = _sizes(candidate, node.gpus)
    if size is not None:
        fits = size in sizes and weight / size <= LIMIT * usable
        share = _share(weight, usable) if size == 1 else 1.0
        return _Way(False, size, share, "tensor parallel declared") if fits else None
    for size in sizes:
        if weight / size <= COMFORT * usable:
            share = _share(weight, usable) if size == 1 else 1.0
            return _Way(False, size, share, f"{_over(candidate, size, node)} leave room to batch")
    if sizes and weight / sizes[-1] <= LIMIT * usable:
        return _Way(True, sizes[-1], 1.0, f"{_over(candidate, sizes[-1], node)} leave little room to batch")
    return None


def _over(candidate: Candidate, size: int, node: Node) -> str:
    return f"{candidate.weight_gib:.3g} GiB of weights over {size} x {node.gpu_memory_gib:g} GiB"


def _share(weight_gib: float, usable_gib: float) -> float:
    """Return the smallest share of a GPU on which a model still has room to batch."""
    return next((share for share in SHARES if weight_gib <= COMFORT * usable_gib * share), 1.0)


def _spanning(candidate: Candidate, nodes: Sequence[Node]) -> list[Footprint]:
    """Return the footprint over the fewest nodes that hold the weights, one pipeline stage per node."""
    if candidate.fraction is not None or not candidate.weight_gib:
        return []
    largest = sorted(range(len(nodes)), key=lambda place: (-_memory(nodes[place]), nodes[place].name))
    for stages in range(2, len(nodes) + 1):
        chosen = [nodes[place] for place in largest[:stages]]
        sizes = _sizes(candidate, min(node.gpus for node in chosen))
        if candidate.tensor_parallel is not None:
            sizes = [size for size in sizes if size == candidate.tensor_parallel]
        usable = min(node.gpu_memory_gib for node in chosen) * candidate.utilization
        if sizes and candidate.weight_gib / (sizes[-1] * stages) <= LIMIT * usable:
            reason = (
                f"{candidate.weight_gib:.3g} GiB of weights exceed every node: {stages} nodes, a stage each"
            )
            alike = [place for place in largest if _at_least(nodes[place], sizes[-1], usable, candidate)]
            return [Footprint(sizes[-1], stages, nodes=tuple(alike), reason=reason)]
    return []


def _at_least(node: Node, gpus: int, usable_gib: float, candidate: Candidate) -> bool:
    return node.gpus >= gpus and node.gpu_memory_gib * candidate.utilization >= usable_gib


def _memory(node: Node) -> float:
    return node.gpus * node.gpu_memory_gib


def _sizes(candidate: Candidate, gpus: int) -> list[int]:
    """Return legal tensor parallel sizes on a node: the declared size, else powers of two.

    Each divides the number of attention heads.
    """
    if candidate.tensor_parallel is not None:
        sizes = [candidate.tensor_parallel]
    else:
        sizes = [1 << power for power in range(gpus.bit_length())]
    return [size for size in sizes if size <= gpus and _divides(size, candidate)]


def _divides(size: int, candidate: Candidate) -> bool:
    return candidate.heads is None or candidate.heads % size == 0


REPLY_SHARE = 0.4
"""Expected length of a free reply, as a share of the tokens that it may have: an assumption. Public
measurements have .06, .24, .42 and .76 for four models that described photographs in at most 256 tokens
(bayis.co.uk, "Model Choice Determines VLM Inference Cost")."""

CHOICE_TOKENS = 4
"""Expected length of a reply that is an option: a letter and the end, or a few letters."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of one GPU: assumptions for a data-centre GPU of the 80 GiB class, not measurements.

    To calibrate, take `tokens.computed`, `tokens.output` and `seconds.generate` from the manifest of a
    finished run: a run with short replies gives `prefill`, a run with long replies gives `decode`. A run
    tells after its first minutes by what factor both are off.
    """

    prefill: float = 80_000.0  # prompt tokens per second x billions of active parameters
    decode: float = 16_000.0  # output tokens per second x billions of active parameters, batched
    load_seconds: float = 60.0  # per engine start, without reading the weights
    load_gib_per_second: float = 1.0
    encoder_billions: float = 0.675  # parameters of Qwen2.5-VL's vision encoder, by vLLM's recipes
    patches: float = (
        4.0  # that the encoder reads per token of a frame: Qwen, Gemma 3 and InternVL merge 2 x 2
    )


def work_seconds(candidate: Candidate, rates: Rates) -> float:
    """Return one GPU's expected seconds for the remaining work: beginnings and frames computed once."""
    if candidate.computed_tokens is None:
        return most_seconds(candidate, rates)
    replies = candidate.output_tokens if candidate.reply_tokens is None else candidate.reply_tokens
    tokens = candidate.computed_tokens / rates.prefill + replies / rates.decode
    encoding = candidate.encoder_tokens * rates.patches * rates.encoder_billions / rates.prefill
    return tokens * candidate.billions + encoding


def most_seconds(candidate: Candidate, rates: Rates) -> float:
    """Return one GPU's seconds for the remaining work at most: no cached prefixes, full replies."""
    tokens = candidate.prompt_tokens / rates.prefill + candidate.output_tokens / rates.decode
    return tokens * candidate.billions


def load_seconds(candidate: Candidate, rates: Rates) -> float:
    """Return the seconds of one engine start; 0 without GPUs."""
    if candidate.needs != "gpu":
        return 0.0
    return rates.load_seconds + candidate.weight_gib / rates.load_gib_per_second


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
