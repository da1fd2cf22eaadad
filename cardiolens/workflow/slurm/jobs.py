"""The jobs of a run: prepare, one per model (an array if models need the same resources), score."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cardiolens.inference.placement.placement import Deployment

Step = Literal["prepare", "model", "score"]


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources that the job of a model requests."""

    nodes: int
    gpus: int  # per node


@dataclass(frozen=True, slots=True)
class Job:
    """One batch script."""

    step: Step
    name: str  # name of the script file; the job's name appends the run's name
    models: tuple[str, ...] = ()  # one array task per model if there are several
    resources: Resources = Resources(1, 0)

    @property
    def is_array(self) -> bool:  # used by the script templates
        return len(self.models) > 1


def jobs_of(deployments: Sequence[Deployment], *, prepare: bool) -> tuple[Job, ...]:
    """Return the jobs in dependency order, models in the order of their deployments."""
    alike: dict[Resources, list[str]] = {}
    for deployment in deployments:
        alike.setdefault(resources(deployment), []).append(deployment.model)
    first = (Job("prepare", "prepare"),) if prepare else ()
    return (*first, *_model_jobs(alike.items()), Job("score", "score"))


def _model_jobs(alike: Iterable[tuple[Resources, list[str]]]) -> Iterable[Job]:
    for resources, models in alike:
        size = f"{resources.nodes}x{resources.gpus}gpu" if resources.gpus else "cpu"
        name = models[0] if len(models) == 1 else f"models-{size}"
        yield Job("model", name, tuple(models), resources)


def resources(deployment: Deployment) -> Resources:
    """Return the number of nodes of a deployment, and the most GPUs that it uses on one node."""
    if not deployment.gpus:
        return Resources(1, 0)
    totals: Counter[str] = Counter()
    for nodes in deployment.hosts:
        for node in nodes:
            totals[node] += deployment.tensor_parallel * deployment.share  # type: ignore[assignment]
    return Resources(len(totals), math.ceil(max(totals.values()) - 1e-9))
