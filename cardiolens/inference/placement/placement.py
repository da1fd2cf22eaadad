"""Placement of models on GPUs, and their order; decided before any GPU is used."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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

_WHOLE = 1.0 + 1e-9  # shares are sums of floats


@dataclass(slots=True)
class _Standing:
    """The replicas of one model, and the footprint of each."""

    way: Footprint
    places: list[tuple[tuple[int, int], ...]] = field(
        default_factory=list
    )  # per replica: its (node, GPU) pairs


class Board:
    """The GPUs of a cluster and the replicas on them; the shares of one GPU sum to at most 1."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._on: list[list[list[str]]] = [[[] for _ in range(node.gpus)] for node in nodes]
        self._standing: dict[str, _Standing] = {}

    def put(self, model: str, way: Footprint, *, alone: bool) -> bool:
        """Place one replica where the fewest GPUs stay free (best fit); return False if there is no room.

        With `alone`, use only GPUs without other models, unless the model declares its share.
        """
        places = self._across(way) if way.pipeline_parallel > 1 else self._within(way, alone)
        if places is None:
            return False
        self._standing.setdefault(model, _Standing(way)).places.append(places)
        for node, gpu in places:
            self._on[node][gpu].append(model)
        return True

    def replicas(self, model: str) -> int:
        """Return the number of replicas of a model."""
        return len(self._standing[model].places)

    def gpus(self, model: str) -> float:
        """Return the GPUs of all replicas of a model; a share counts as a fraction."""
        standing = self._standing[model]
        return len(standing.places) * standing.way.gpus * self.share(model)

    def hosts(self, model: str) -> tuple[tuple[str, ...], ...]:
        """Return the names of the nodes of each replica."""
        places = self._standing[model].places
        return tuple(
            tuple(dict.fromkeys(self._nodes[node].name for node, _ in replica)) for replica in places
        )

    def share(self, model: str) -> float:
        """Return the model's share of each of its GPUs: equal on all, limited by the most crowded GPU."""
        way = self._standing[model].way
        if not way.grows:
            return way.least_share
        spots = [spot for replica in self._standing[model].places for spot in replica]
        return min(self._shares(node, gpu)[model] for node, gpu in spots)

    def _shares(self, node: int, gpu: int) -> dict[str, float]:
        """Return the share of each model on one GPU: least shares, the smallest doubled while possible."""
        on = self._on[node][gpu]
        shares = {model: self._standing[model].way.least_share * on.count(model) for model in on}
        growing = [model for model in shares if self._standing[model].way.grows]
        while fit := [model for model in growing if sum(shares.values()) + shares[model] <= _WHOLE]:
            smallest = min(fit, key=lambda model: shares[model])
            shares[smallest] *= 2
        return shares

    def _within(self, way: Footprint, alone: bool) -> tuple[tuple[int, int], ...] | None:
        """Choose GPUs on the node with the fewest usable GPUs that suffice; None if no node has enough."""
        best: tuple[tuple[int, int], tuple[tuple[int, int], ...]] | None = None
        for node in way.nodes:
            gpus = self._room(node, way, alone)
            if len(gpus) >= way.tensor_parallel:
                rank = (len(gpus), node)
                if best is None or rank < best[0]:
                    best = rank, tuple((node, gpu) for gpu in gpus[: way.tensor_parallel])
        return None if best is None else best[1]

    def _room(self, node: int, way: Footprint, alone: bool) -> list[int]:
        """Return the GPUs of a node with room for one share, the fullest first."""
        used_shares = [sum(self._standing[model].way.least_share for model in on) for on in self._on[node]]
        if alone and way.grows:
            return [gpu for gpu, share in enumerate(used_shares) if not share]
        fit = [gpu for gpu, share in enumerate(used_shares) if share + way.least_share <= _WHOLE]
        return sorted(fit, key=lambda gpu: (-used_shares[gpu], gpu))

    def _across(self, way: Footprint) -> tuple[tuple[int, int], ...] | None:
        """Choose free GPUs on a different node for each pipeline stage; None if there are too few nodes."""
        stages: list[tuple[int, int]] = []
        for node in way.nodes:
            free = self._room(node, way, alone=True)
            if len(free) >= way.tensor_parallel and len(stages) < way.gpus:
                stages += [(node, gpu) for gpu in free[: way.tensor_parallel]]
        return tuple(stages) if len(stages) == way.gpus else None


@dataclass(frozen=True, slots=True)
class Deployment:
    """The replicas of one model in one wave."""

    model: str
    tensor_parallel: int
    pipeline_parallel: int
    hosts: tuple[tuple[str, ...], ...]  # per replica: its node, or the nodes that the replica spans
    share: float  # of each GPU; 0 without GPUs
    utilization: float  # part of a GPU's memory for the engine, already multiplied by the share
    reason: str
    seconds: float  # estimated, including loading
    needs: Needs = "gpu"
    most_seconds: float = 0.0  # as if nothing came from a cache and every reply were full
    load_seconds: float = 0.0  # of both: before the engines are up

    @property
    def replicas(self) -> int:
        return len(self.hosts)

    @property
    def gpus_per_replica(self) -> float:
        """GPUs that a replica reserves: a whole number, or a fraction of one GPU."""
        return self.tensor_parallel * self.pipeline_parallel * self.share

    @property
    def gpus(self) -> float:
        return self.replicas * self.gpus_per_replica

    @property
    def spans_nodes(self) -> bool:
        return self.pipeline_parallel > 1

    @property
    def gpu_hours(self) -> float:
        return self.gpus * self.seconds / 3600


Ways = Mapping[str, tuple[Footprint, ...]]

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

    Each wave is the best of several drafts: the draft that keeps the GPUs busiest by the estimate. The choice
    is greedy, not optimal.

    If any model runs on GPUs, models without GPUs join the first wave. Otherwise, each model that computes on
    the processor gets a wave of its own, because two would compete for the processor.
    """
    rates = rates or Rates()
    nodes = tuple(sorted(nodes, key=lambda node: node.name))
    everyone = sorted(candidates, key=lambda candidate: (-_alone(candidate, rates), candidate.name))
    ordered = [candidate for candidate in everyone if not candidate.lacks]
    waiting = [candidate for candidate in ordered if candidate.needs == "gpu"]
    ways = {candidate.name: footprints(candidate, nodes) for candidate in waiting}
    refusals = [Refusal(candidate.name, candidate.lacks) for candidate in everyone if candidate.lacks]
    refusals += [
        Refusal(candidate.name, refusal(candidate, nodes))
        for candidate in waiting
        if not ways[candidate.name]
    ]
    waiting = [candidate for candidate in waiting if ways[candidate.name]]
    waves: list[Wave] = []
    while waiting:
        waves.append(_wave(nodes, waiting, ways, rates))
        placed_models = {deployment.model for deployment in waves[-1]}
        waiting = [candidate for candidate in waiting if candidate.name not in placed_models]
    return Placement(nodes, _with_others(waves, ordered), tuple(refusals))


def _alone(candidate: Candidate, rates: Rates) -> float:
    return load_seconds(candidate, rates) + work_seconds(candidate, rates)


def _wave(nodes: Sequence[Node], waiting: Sequence[Candidate], ways: Ways, rates: Rates) -> Wave:
    """Choose the best of several drafts: few models with many replicas, or more models side by side.

    Side by side is better if loading takes longer than computing, or if no model can fill the cluster.
    """
    drafts = [
        _draft(nodes, waiting, preferred, rates, first, sharing=sharing)
        for preferred in _preferences(ways)
        for first in range(1, len(waiting) + 1)
        for sharing in (False, True)
    ]
    best = max(drafts, key=lambda draft: _merit(draft, nodes, rates))
    return tuple(_deployment(member, way, best.board, rates) for member, way in best.members.values())


def _preferences(ways: Ways) -> Iterator[Ways]:
    """Yield the ways with the fewest GPUs first; if nodes differ, also those that fit on most nodes first."""
    yield ways
    widest = {
        name: tuple(sorted(own_ways, key=lambda way: (way.tight, -len(way.nodes))))
        for name, own_ways in ways.items()
    }
    if widest != ways:
        yield widest


@dataclass(frozen=True, slots=True)
class _Draft:
    """A proposal for a wave: a board, and the candidate and footprint of each model."""

    board: Board
    members: dict[str, tuple[Candidate, Footprint]]


def _draft(
    nodes: Sequence[Node],
    waiting: Sequence[Candidate],
    ways: Ways,
    rates: Rates,
    first: int,
    *,
    sharing: bool,
) -> _Draft:
    """Seat one replica of each of the `first` models, add replicas while there is room, then other models."""
    draft = _Draft(Board(nodes), {})
    for alone in (True, False) if sharing else (True,):
        _seat(draft, waiting[:first], ways, alone=alone)
    _replicate(draft, rates)
    _seat(draft, waiting, ways, alone=True)
    _replicate(draft, rates)
    return draft


def _seat(draft: _Draft, candidates: Sequence[Candidate], ways: Ways, *, alone: bool) -> None:
    for candidate in candidates:
        if candidate.name not in draft.members:
            fitting = next(
                (way for way in ways[candidate.name] if draft.board.put(candidate.name, way, alone=alone)),
                None,
            )
            if fitting is not None:
                draft.members[candidate.name] = candidate, fitting


def _replicate(draft: _Draft, rates: Rates) -> None:
    """Add replicas while there is room, each to the model with the most work per GPU."""
    board = draft.board
    while True:
        wanting = [
            (-work_seconds(candidate, rates) / board.gpus(name), name, way)
            for name, (candidate, way) in draft.members.items()
            if board.replicas(name) < _most(candidate)
        ]
        if not any(board.put(name, way, alone=True) for _, name, way in sorted(wanting, key=lambda w: w[:2])):
            return


def _merit(draft: _Draft, nodes: Sequence[Node], rates: Rates) -> tuple[float, int, int]:
    """Rank a draft by the part of GPU time spent computing, then more models, then fewer shared GPUs."""
    members = [(member, draft.board.gpus(name)) for name, (member, _) in draft.members.items()]
    duration = max(
        load_seconds(member, rates) + work_seconds(member, rates) / gpus for member, gpus in members
    )
    computing = sum(work_seconds(member, rates) for member, _ in members)
    shared = sum(draft.board.share(name) < 1 for name in draft.members)
    return round(computing / duration / sum(node.gpus for node in nodes), 2), len(members), -shared


def _most(candidate: Candidate) -> int:
    """Return the largest useful number of replicas: the declared number, else one per study."""
    return candidate.studies if candidate.replicas is None else candidate.replicas


def _deployment(candidate: Candidate, way: Footprint, board: Board, rates: Rates) -> Deployment:
    share = board.share(candidate.name)
    hosts = board.hosts(candidate.name)
    loading, gpus = load_seconds(candidate, rates), len(hosts) * way.gpus * share
    return Deployment(
        model=candidate.name,
        tensor_parallel=way.tensor_parallel,
        pipeline_parallel=way.pipeline_parallel,
        hosts=hosts,
        share=share,
        utilization=round(candidate.utilization * share, 4),
        reason=_reason(candidate, way, share, len(hosts)),
        seconds=loading + work_seconds(candidate, rates) / gpus,
        most_seconds=loading + most_seconds(candidate, rates) / gpus,
        load_seconds=loading,
    )


def _reason(candidate: Candidate, way: Footprint, share: float, replicas: int) -> str:
    parts = [way.reason]
    if share < 1 and candidate.fraction is None:
        parts.append(f"shares a GPU ({share:g}): loading weighs more than computing")
    if candidate.replicas is not None:
        parts.append(
            "replicas declared"
            if replicas == candidate.replicas
            else f"{candidate.replicas} replicas declared, no room for more"
        )
    elif replicas > 1:
        parts.append(f"{replicas} replicas divide its work")
    return "; ".join(parts)


def _with_others(waves: list[Wave], ordered: Sequence[Candidate]) -> tuple[Wave, ...]:
    """Add the models that need no GPU to the waves of GPU models."""
    remote = [
        _without_gpus(candidate, "answers come over the network")
        for candidate in ordered
        if candidate.needs == "network"
    ]
    local = [
        _without_gpus(candidate, "computes on the processor")
        for candidate in ordered
        if candidate.needs == "processor"
    ]
    if waves:
        return ((*waves[0], *remote, *local), *waves[1:])
    if not local:
        return (tuple(remote),) if remote else ()
    return ((local[0], *remote), *((deployment,) for deployment in local[1:]))


def _without_gpus(candidate: Candidate, reason: str) -> Deployment:
    hosts = ((),) * (candidate.replicas or 1)
    size = candidate.tensor_parallel or 1
    return Deployment(
        candidate.name, size, 1, hosts, 0.0, candidate.utilization, reason, 0.0, candidate.needs
    )
