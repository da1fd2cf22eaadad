"""Placement of models on GPUs, and their order; decided before any GPU is used."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cardiolens.inference.placement.footprint import (
    Candidate,
    Footprint,
    Needs,
    Node,
    Rates,
    footprints,
    load_seconds,
    most_seconds,
    refusal,
    work_seconds,
)


class FreeGpus:
    """The number of GPUs of each node that no replica holds."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._free = Counter({node.name: node.gpus for node in nodes})

    def seat(self, way: Footprint) -> tuple[str, ...] | None:
        """Take the GPUs of one replica, where the fewest stay free; return its nodes, None without room."""
        fit = [node for node in way.nodes if self._free[node] >= way.tensor_parallel]
        if way.pipeline_parallel == 1:
            fit.sort(key=self._free.__getitem__)
        hosts = tuple(fit[: way.pipeline_parallel])
        return hosts if len(hosts) == way.pipeline_parallel and self.take(hosts, way.gpus) else None

    def take(self, hosts: Sequence[str], gpus: int) -> bool:
        """Take some GPUs, equally many of each host; return False, without taking any, if one has too few."""
        gpus_of_node = _per_node(hosts, gpus)
        if any(self._free[node] < number for node, number in gpus_of_node.items()):
            return False
        self._free.subtract(gpus_of_node)
        return True

    def give_back(self, hosts: Sequence[str], gpus: int) -> None:
        """Undo `take`."""
        self._free.update(_per_node(hosts, gpus))


def _per_node(hosts: Sequence[str], gpus: int) -> dict[str, int]:
    return {node: number * gpus // len(hosts) for node, number in Counter(hosts).items()}


@dataclass(frozen=True, slots=True)
class Deployment:
    """The replicas of one model in one wave."""

    model: str
    tensor_parallel: int
    pipeline_parallel: int
    hosts: tuple[tuple[str, ...], ...]  # per replica: its node, or the nodes that the replica spans
    utilization: float  # part of a GPU's memory for the engine
    reason: str
    seconds: float  # estimated, including loading
    needs: Needs = "gpu"
    most_seconds: float = 0.0  # as if nothing came from a cache and every reply were full

    @property
    def replicas(self) -> int:
        return len(self.hosts)

    @property
    def gpus_per_replica(self) -> int:
        """GPUs that a replica reserves."""
        return self.tensor_parallel * self.pipeline_parallel if self.needs == "gpu" else 0

    @property
    def gpus(self) -> int:
        return self.replicas * self.gpus_per_replica

    @property
    def spans_nodes(self) -> bool:
        return self.pipeline_parallel > 1

    @property
    def gpu_hours(self) -> float:
        return self.gpus * self.seconds / 3600


Wave = tuple[Deployment, ...]
"""Deployments of the models that fill the cluster together."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A model that cannot run, and the reason."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Waves in the order in which their models get GPUs, and the models that cannot run.

    A wave is not a barrier: a model begins as soon as its GPUs are free, see `schedule`.
    """

    nodes: tuple[Node, ...]
    waves: tuple[Wave, ...]
    refusals: tuple[Refusal, ...]

    @property
    def deployments(self) -> Wave:
        """The deployments of all waves, in order."""
        return tuple(deployment for wave in self.waves for deployment in wave)

    @property
    def gpu_hours(self) -> float:
        return sum(deployment.gpu_hours for deployment in self.deployments)


def place(nodes: Sequence[Node], candidates: Iterable[Candidate], rates: Rates | None = None) -> Placement:
    """Place every model or refuse it with a reason; the longest work first, ties by name.

    Each wave is the draft that keeps the GPUs busiest by the estimate. The choice is greedy, not optimal.

    If any model runs on GPUs, models without GPUs join the first wave. Otherwise, each model that computes on
    the processor gets a wave of its own, because two would compete for the processor.
    """
    rates = rates or Rates()
    nodes = tuple(sorted(nodes, key=lambda node: node.name))
    everyone = sorted(
        candidates, key=lambda one: (-load_seconds(one, rates) - work_seconds(one, rates), one.name)
    )
    refusals = [Refusal(candidate.name, candidate.lacks) for candidate in everyone if candidate.lacks]
    others = [one for one in everyone if not one.lacks and one.needs != "gpu"]
    ways, waiting = dict[str, tuple[Footprint, ...]](), list[Candidate]()
    for candidate in everyone:
        if candidate.lacks or candidate.needs != "gpu":
            continue
        if found := footprints(candidate, nodes):
            ways[candidate.name] = found
            waiting.append(candidate)
        else:
            refusals.append(Refusal(candidate.name, refusal(candidate, nodes)))
    waves: list[Wave] = []
    while waiting:
        drafts = [_draft(nodes, waiting, ways, rates, first) for first in range(1, len(waiting) + 1)]
        best = max(drafts, key=lambda draft: _merit(draft, nodes, rates))
        waves.append(tuple(_deployment(member, rates) for member in best.values()))
        waiting = [candidate for candidate in waiting if candidate.name not in best]
    return Placement(nodes, _with_others(waves, others), tuple(refusals))


@dataclass(slots=True)
class _Member:
    """A model of a draft: how it runs, and the nodes of each replica."""

    candidate: Candidate
    way: Footprint
    hosts: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def gpus(self) -> int:
        return len(self.hosts) * self.way.gpus

    @property
    def wants_more(self) -> bool:
        """Whether another replica is useful: up to the declared number, else one per study."""
        candidate = self.candidate
        return len(self.hosts) < (candidate.studies if candidate.replicas is None else candidate.replicas)


_Draft = dict[str, _Member]
"""A proposal for a wave, by model."""


def _draft(
    nodes: Sequence[Node],
    waiting: Sequence[Candidate],
    ways: Mapping[str, tuple[Footprint, ...]],
    rates: Rates,
    first: int,
) -> _Draft:
    """Seat one replica of each of the `first` models, add replicas while there is room, then other models.

    Few models with many replicas, or more side by side: that is better if loading takes longer than
    computing, or if no model can fill the cluster.
    """
    free, draft = FreeGpus(nodes), _Draft()
    for candidates in (waiting[:first], waiting):
        for candidate in candidates:
            for way in () if candidate.name in draft else ways[candidate.name]:
                if hosts := free.seat(way):
                    draft[candidate.name] = _Member(candidate, way, [hosts])
                    break
        _replicate(draft, free, rates)
    return draft


def _replicate(draft: _Draft, free: FreeGpus, rates: Rates) -> None:
    """Add replicas while there is room, each to the model with the most work per GPU."""

    def key(member: _Member) -> tuple[float, str]:
        return -work_seconds(member.candidate, rates) / member.gpus, member.candidate.name

    added = True
    while added:
        added = False
        for member in sorted((one for one in draft.values() if one.wants_more), key=key):
            if hosts := free.seat(member.way):
                member.hosts.append(hosts)
                added = True
                break


def _merit(draft: _Draft, nodes: Sequence[Node], rates: Rates) -> tuple[float, int]:
    """Rank a draft by the part of GPU time spent computing, then by more models."""
    works = [(work_seconds(member.candidate, rates), member) for member in draft.values()]
    duration = max(load_seconds(member.candidate, rates) + work / member.gpus for work, member in works)
    computing = sum(work for work, _ in works)
    return round(computing / duration / sum(node.gpus for node in nodes), 2), len(draft)


def _deployment(member: _Member, rates: Rates) -> Deployment:
    candidate, way, loading = member.candidate, member.way, load_seconds(member.candidate, rates)
    replicas, declared = len(member.hosts), candidate.replicas
    parts = [way.reason]
    if declared is not None:
        parts.append(
            "replicas declared" if replicas == declared else f"{declared} replicas declared, no room"
        )
    elif replicas > 1:
        parts.append(f"{replicas} replicas divide its work")
    return Deployment(
        model=candidate.name,
        tensor_parallel=way.tensor_parallel,
        pipeline_parallel=way.pipeline_parallel,
        hosts=tuple(member.hosts),
        utilization=candidate.utilization,
        reason="; ".join(parts),
        seconds=loading + work_seconds(candidate, rates) / member.gpus,
        most_seconds=loading + most_seconds(candidate, rates) / member.gpus,
    )


_REASONS: Mapping[Needs, str] = {
    "network": "answers come over the network",
    "processor": "computes on the processor",
}


def _with_others(waves: list[Wave], others: Sequence[Candidate]) -> tuple[Wave, ...]:
    """Add the models that need no GPU to the waves of GPU models."""
    remote, local = (
        [_without_gpus(one) for one in others if one.needs == needs] for needs in ("network", "processor")
    )
    if waves or not local:
        first = (*(waves[0] if waves else ()), *remote, *local)
        return (first, *waves[1:]) if first else ()
    return ((local[0], *remote), *((deployment,) for deployment in local[1:]))


def _without_gpus(candidate: Candidate) -> Deployment:
    hosts = ((),) * (candidate.replicas or 1)
    size, reason = candidate.tensor_parallel or 1, _REASONS[candidate.needs]
    return Deployment(candidate.name, size, 1, hosts, candidate.utilization, reason, 0.0, candidate.needs)
