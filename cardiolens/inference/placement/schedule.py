"""Start models as GPUs become free, and estimate when each model begins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from cardiolens.inference.placement.footprint import Node
from cardiolens.inference.placement.placement import Deployment, Placement

_ROUNDING = 1e-9  # shares are sums of floats

GpuSpot = tuple[str, int, float]  # node, GPU, share of it


class Seating:
    """Free GPUs of a cluster while models begin and end; takes the fullest GPU that fits, as Ray does.

    On a cluster without GPUs, one model at a time computes on the processor. With GPUs, models on the
    processor may begin at any time. Models behind a network may always begin.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._free = {node.name: [1.0] * node.gpus for node in nodes}
        self._taken: dict[str, list[GpuSpot]] = {}
        self._computing: str | None = None

    def may_always_begin(self, deployment: Deployment) -> bool:
        """Return whether the model needs no resource that other models may occupy."""
        return deployment.needs == "network" or (deployment.needs == "processor" and bool(self._free))

    def take(self, deployment: Deployment) -> bool:
        """Reserve the GPUs of all replicas of a model; return False, without reserving, if some are taken."""
        if self.may_always_begin(deployment):
            return True
        if deployment.needs == "processor":
            if self._computing is None:
                self._computing = deployment.model
            return self._computing == deployment.model
        spots = self._spots(deployment)
        if spots is None:
            return False
        self._taken[deployment.model] = spots
        for node, gpu, share in spots:
            self._free[node][gpu] -= share
        return True

    def give_back(self, model: str) -> None:
        """Release the GPUs of a model."""
        if self._computing == model:
            self._computing = None
        for node, gpu, share in self._taken.pop(model, ()):
            self._free[node][gpu] += share

    def _spots(self, deployment: Deployment) -> list[GpuSpot] | None:
        free = {node: list(gpus) for node, gpus in self._free.items()}
        spots: list[GpuSpot] = []
        for node in (host for hosts in deployment.hosts for host in hosts):
            fit = [
                gpu for gpu, free_share in enumerate(free[node]) if free_share + _ROUNDING >= deployment.share
            ]
            chosen = sorted(fit, key=lambda gpu: free[node][gpu])[: deployment.tensor_parallel]
            if len(chosen) < deployment.tensor_parallel:
                return None
            for gpu in chosen:
                free[node][gpu] -= deployment.share
                spots.append((node, gpu, deployment.share))
        return spots


@dataclass(frozen=True, slots=True)
class Schedule:
    """Estimated times of the models of a placement."""

    begins: Mapping[str, float]  # per model: seconds from the start
    seconds: float  # until the last model has ended
    at_once: int  # the largest number of models that run at the same time


def schedule(placement: Placement) -> Schedule:
    """Simulate a placement: a model begins once its GPUs are free; models placed earlier go first."""
    seating = Seating(placement.nodes)
    waiting = list(placement.deployments)
    unbound = sum(map(seating.may_always_begin, waiting))
    running: list[tuple[float, str]] = []
    begins: dict[str, float] = {}
    now, most = 0.0, 0
    while waiting or running:
        for deployment in tuple(waiting):
            if seating.take(deployment):
                waiting.remove(deployment)
                begins[deployment.model] = now
                if not seating.may_always_begin(deployment):
                    heappush(running, (now + deployment.seconds, deployment.model))
        most = max(most, len(running))
        assert running or not waiting, "a placed model fits when no other model runs"
        if running:
            now, departure = heappop(running)
            seating.give_back(departure)
    return Schedule(begins, now, most + unbound)
