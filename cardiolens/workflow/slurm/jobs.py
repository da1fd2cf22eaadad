"""The jobs of a run: prepare, one per model (an array if models need the same resources), score."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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


def short_of_cpus(deployments: Sequence[Deployment], cpus: int | None) -> Iterator[str]:
    """Yield a sentence for each model whose engines need more processors of a node than `cpus` allows."""
    for deployment in deployments:
        wanted = _cpus_wanted(deployment) if deployment.gpus else 0
        if cpus is not None and cpus < wanted:
            yield (
                f"cluster.cpus={cpus}: the engines of {deployment.model} on a node want {wanted} (2 each, "
                "one for each GPU, and 2 for the stream), and will wait for each other; leave it out"
            )


def _model_jobs(alike: Iterable[tuple[Resources, list[str]]]) -> Iterable[Job]:
    for resources, models in alike:
        size = f"{resources.nodes}x{resources.gpus}gpu-{resources.cpus}cpu" if resources.gpus else "cpu"
        name = models[0] if len(models) == 1 else f"models-{size}"
        yield Job("model", name, tuple(models), resources)


def resources(deployment: Deployment) -> Resources:
    """Return the nodes of a deployment, and the most GPUs and processors that it needs on one of them."""
    if not deployment.gpus:
        return Resources(1, 0)
    most = _most_engines(deployment)
    gpus = math.ceil(most * deployment.tensor_parallel * deployment.share - 1e-9)
    n_nodes = len({node for nodes in deployment.hosts for node in nodes})
    return Resources(n_nodes, gpus, max(FEWEST_CPUS, _cpus_wanted(deployment)))


def _cpus_wanted(deployment: Deployment) -> int:
    return _STREAM_CPUS + _most_engines(deployment) * (_ENGINE_CPUS + deployment.tensor_parallel)


def _most_engines(deployment: Deployment) -> int:
    """Return the number of engines on the node that has the most of them."""
    return max(Counter(node for nodes in deployment.hosts for node in nodes).values())
