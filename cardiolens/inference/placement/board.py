"""The assignment of replicas to GPUs in one wave."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cardiolens.inference.placement.footprint import Footprint, Node

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
