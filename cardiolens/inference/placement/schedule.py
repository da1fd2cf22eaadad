"""Start models as GPUs become free, and estimate when each model begins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain

from cardiolens.inference.placement.footprint import Node
from cardiolens.inference.placement.placement import Deployment, FreeGpus, Placement


class Seating:
    """Free GPUs of a cluster while models begin and end.

    On a cluster without GPUs, one model at a time computes on the processor. With GPUs, models on the
    processor may begin at any time. Models behind a network may always begin.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._free = FreeGpus(nodes)
        self._has_gpus = bool(nodes)
        self._taken: dict[str, Deployment] = {}
        self._computing: str | None = None

    def may_always_begin(self, deployment: Deployment) -> bool:
        """Return whether the model needs no resource that other models may occupy."""
        return deployment.needs == "network" or (deployment.needs == "processor" and self._has_gpus)

    def take(self, deployment: Deployment) -> bool:
        """Reserve the GPUs of all replicas of a model; return False, without reserving, if some are taken."""
        if self.may_always_begin(deployment):
            return True
        if deployment.needs == "processor":
            self._computing = self._computing or deployment.model
            return self._computing == deployment.model
        if not self._free.take(_hosts(deployment), deployment.gpus):
            return False
        self._taken[deployment.model] = deployment
        return True

    def give_back(self, model: str) -> None:
        """Release the GPUs of a model."""
        if self._computing == model:
            self._computing = None
        if deployment := self._taken.pop(model, None):
            self._free.give_back(_hosts(deployment), deployment.gpus)


def _hosts(deployment: Deployment) -> list[str]:
    return list(chain.from_iterable(deployment.hosts))


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
