"""Placement of models on GPUs, and their order; decided before any GPU is used.

Models start as GPUs become free.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from cardiolens.inference.placement.footprint import (
    Candidate,
    Footprint,
    Needs,
    Node,
    footprints,
    load_seconds,
    most_seconds,
    refusal,
    work_seconds,
)


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
class Placement:
    """Waves in the order in which their models get GPUs, and the models that cannot run.

    A wave is not a barrier: a model begins as soon as its GPUs are free.
    """

    nodes: tuple[Node, ...]
    waves: tuple[Wave, ...]
    refusals: Mapping[str, str] = field(default_factory=dict)  # reason by model

    @property
    def deployments(self) -> Wave:
        """The deployments of all waves, in order."""
        return tuple(deployment for wave in self.waves for deployment in wave)

    @property
    def seconds(self) -> float:
        """Estimated seconds, if each wave began when the one before it had ended."""
        return sum(max(deployment.seconds for deployment in wave) for wave in self.waves)

    @property
    def gpu_hours(self) -> float:
        return sum(deployment.gpu_hours for deployment in self.deployments)


def place(nodes: Sequence[Node], candidates: Iterable[Candidate]) -> Placement:
    """Place every model or refuse it with a reason; the longest work first, ties by name.

    Each wave is the draft that keeps the GPUs busiest by the estimate. The choice is greedy, not optimal.

    If any model runs on GPUs, models without GPUs join the first wave. Otherwise, each model that computes on
    the processor gets a wave of its own, because two would compete for the processor.
    """
    nodes = tuple(sorted(nodes, key=lambda node: node.name))
    everyone = sorted(candidates, key=lambda model: (-load_seconds(model) - work_seconds(model), model.name))
    refusals = {model.name: model.lacks for model in everyone if model.lacks}
    others = [model for model in everyone if not model.lacks and model.needs != "gpu"]
    ways = {
        model.name: footprints(model, nodes) for model in everyone if not model.lacks and model.needs == "gpu"
    }
    refusals |= {model.name: refusal(model, nodes) for model in everyone if ways.get(model.name) == ()}
    waiting = [model for model in everyone if ways.get(model.name)]
    waves: list[Wave] = []
    while waiting:
        drafts = [_draft(nodes, waiting, ways, first) for first in range(1, len(waiting) + 1)]
        best = max(drafts, key=lambda draft: _merit(draft, nodes))
        waves.append(tuple(_deployment(member) for member in best.values()))
        waiting = [candidate for candidate in waiting if candidate.name not in best]
    return Placement(nodes, _with_others(waves, others), refusals)


@dataclass(slots=True)
class _Member:
    """A model of a draft: how it runs, and the nodes of each replica."""

    candidate: Candidate
    way: Footprint
    hosts: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def gpus(self) -> int:
        return len(self.hosts) * self.way.gpus


_Draft = dict[str, _Member]
"""A proposal for a wave, by model."""


def _draft(
    nodes: Sequence[Node],
    waiting: Sequence[Candidate],
    ways: Mapping[str, tuple[Footprint, ...]],
    first: int,
) -> _Draft:
    """Seat one replica of each of the `first` models, add replicas while there is room, then other models.

    Few models with many replicas, or more side by side: that is better if loading takes longer than
    computing, or if no model can fill the cluster.
    """
    seating, draft = Seating(nodes), _Draft()
    for candidates in (waiting[:first], waiting):
        for candidate in candidates:
            for way in () if candidate.name in draft else ways[candidate.name]:
                if hosts := seating.seat(way):
                    draft[candidate.name] = _Member(candidate, way, [hosts])
                    break
        _replicate(draft, seating)
    return draft


def _replicate(draft: _Draft, seating: "Seating") -> None:
    """Add replicas while there is room, each to the model with the most work per GPU.

    A model has no more than declared, else one per study.
    """

    def key(member: _Member) -> tuple[float, str]:
        return -work_seconds(member.candidate) / member.gpus, member.candidate.name

    growing = list(draft.values())
    while growing:
        member = min(growing, key=key)
        most = member.candidate.replicas or member.candidate.studies
        hosts = seating.seat(member.way) if len(member.hosts) < most else None
        if hosts:
            member.hosts.append(hosts)
        else:
            growing.remove(member)


def _merit(draft: _Draft, nodes: Sequence[Node]) -> tuple[float, int]:
    """Rank a draft by the part of GPU time spent computing, then by more models."""
    works = [(work_seconds(member.candidate), member) for member in draft.values()]
    duration = max(load_seconds(member.candidate) + work / member.gpus for work, member in works)
    computing = sum(work for work, _ in works)
    return round(computing / duration / sum(node.gpus for node in nodes), 2), len(draft)


def _deployment(member: _Member) -> Deployment:
    candidate, way, loading = member.candidate, member.way, load_seconds(member.candidate)
    lacks_room = len(member.hosts) < (candidate.replicas or 1)
    note = f"; {candidate.replicas} replicas declared, no room" if lacks_room else ""
    return Deployment(
        model=candidate.name,
        tensor_parallel=way.tensor_parallel,
        pipeline_parallel=way.pipeline_parallel,
        hosts=tuple(member.hosts),
        utilization=candidate.utilization,
        reason=f"{way.reason}{note}",
        seconds=loading + work_seconds(candidate) / member.gpus,
        most_seconds=loading + most_seconds(candidate) / member.gpus,
    )


_REASONS: Mapping[Needs, str] = {
    "network": "answers come over the network",
    "processor": "computes on the processor",
}


def _with_others(waves: list[Wave], others: Sequence[Candidate]) -> tuple[Wave, ...]:
    """Add the models that need no GPU to the waves of GPU models."""
    remote, local = (
        [_without_gpus(model) for model in others if model.needs == needs]
        for needs in ("network", "processor")
    )
    if not waves:
        waves, local = [(deployment,) for deployment in local] or [()], []
    return tuple(wave for wave in [(*waves[0], *remote, *local), *waves[1:]] if wave)


def _without_gpus(candidate: Candidate) -> Deployment:
    hosts = ((),) * (candidate.replicas or 1)
    size, reason = candidate.tensor_parallel or 1, _REASONS[candidate.needs]
    return Deployment(candidate.name, size, 1, hosts, candidate.utilization, reason, 0.0, candidate.needs)


_PROCESSOR = "the processor"  # beside the names of nodes, of a cluster without GPUs


class Seating:
    """What is free in a cluster while models begin and end.

    On a cluster without GPUs, one model at a time computes on the processor. With GPUs, models on the
    processor may begin at any time. Models behind a network may always begin.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._free = Counter({node.name: node.gpus for node in nodes} if nodes else {_PROCESSOR: 1})
        self._has_gpus = bool(nodes)

    def seat(self, way: Footprint) -> tuple[str, ...] | None:
        """Take the GPUs of one replica, where the fewest stay free; return its nodes, None without room."""
        fit = [node for node in way.nodes if self._free[node] >= way.tensor_parallel]
        if way.pipeline_parallel == 1:
            fit.sort(key=self._free.__getitem__)
        hosts = tuple(fit[: way.pipeline_parallel])
        if len(hosts) < way.pipeline_parallel:
            return None
        self._free -= _gpus_by_node([hosts], way.tensor_parallel)
        return hosts

    def occupied(self, deployment: Deployment) -> Counter[str]:
        """Return what a model takes while it runs; empty if it may begin at any time."""
        if deployment.needs == "gpu":
            return _gpus_by_node(deployment.hosts, deployment.tensor_parallel)
        return Counter({_PROCESSOR: int(deployment.needs == "processor" and not self._has_gpus)})

    def take(self, deployment: Deployment) -> bool:
        """Reserve what all replicas of a model need; return False, without reserving, if some is taken."""
        needed = self.occupied(deployment)
        if not needed <= self._free:
            return False
        self._free -= needed
        return True

    def give_back(self, deployment: Deployment) -> None:
        """Undo `take`."""
        self._free += self.occupied(deployment)


def _gpus_by_node(hosts: Iterable[Sequence[str]], tensor_parallel: int) -> Counter[str]:
    """Count the GPUs of replicas on the nodes in `hosts`."""
    return Counter({node: n * tensor_parallel for node, n in Counter(chain.from_iterable(hosts)).items()})
