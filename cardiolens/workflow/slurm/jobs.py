"""The jobs of a run: prepare, one per model (an array if models need the same resources), score."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cardiolens.inference.placement.placement import Deployment

FEWEST_CPUS = 8  # of a node of a model job: driver, loaders of studies, and a reader
_STREAM_CPUS = 2  # driver, and loaders of studies
_ENGINE_CPUS = 2  # vLLM needs two processors for an engine and one for each of its GPUs

Step = Literal["prepare", "model", "score"]


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources that the job of a model requests."""

    nodes: int
    gpus: int  # per node
    cpus: int = FEWEST_CPUS  # per node


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


def jobs_of(deployments: Sequence[Deployment], *, prepare: bool, cpus: int | None = None) -> tuple[Job, ...]:
    """Return the jobs in dependency order, models in the order of their deployments.

    `cpus` of each node of a model job; None: as its engines need.
    """
    alike: dict[Resources, list[str]] = {}
    for deployment in deployments:
        own = resources(deployment)
        alike.setdefault(own if cpus is None else replace(own, cpus=cpus), []).append(deployment.model)
    first = (Job("prepare", "prepare"),) if prepare else ()
    return (*first, *_model_jobs(alike.items()), Job("score", "score"))


def _model_jobs(alike: Iterable[tuple[Resources, list[str]]]) -> Iterable[Job]:
    for resources, models in alike:
        size = f"{resources.nodes}x{resources.gpus}gpu-{resources.cpus}cpu" if resources.gpus else "cpu"
        name = models[0] if len(models) == 1 else f"models-{size}"
        yield Job("model", name, tuple(models), resources)


def resources(deployment: Deployment) -> Resources:
    """Return the nodes of a deployment, and the most GPUs and processors that it needs on one of them."""
    if not deployment.gpus:
        return Resources(1, 0)
    engines: Counter[str] = Counter(node for nodes in deployment.hosts for node in nodes)
    most = max(engines.values())
    gpus = math.ceil(most * deployment.tensor_parallel * deployment.share - 1e-9)
    cpus = _STREAM_CPUS + most * (_ENGINE_CPUS + deployment.tensor_parallel)
    return Resources(len(engines), gpus, max(FEWEST_CPUS, cpus))
