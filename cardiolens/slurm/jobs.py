"""The jobs of a run: prepare, one a model (an array where models ask for the same), score and page."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cardiolens.placement.placement import Deployment

Step = Literal["prepare", "model", "score"]


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources that the job of a model asks for."""

    nodes: int
    gpus: int  # of each node


@dataclass(frozen=True, slots=True)
class Job:
    """One batch script."""

    step: Step
    name: str  # of the file and, with the run's, of the job
    models: tuple[str, ...] = ()  # a task each, where they are several
    resources: Resources = Resources(1, 0)

    @property
    def is_array(self) -> bool:
        return len(self.models) > 1


def jobs_of(deployments: Sequence[Deployment], *, prepare: bool) -> tuple[Job, ...]:
    """The jobs in the order in which they depend on each other; models in the order given."""
    alike: dict[Resources, list[str]] = {}
    for deployment in deployments:
        alike.setdefault(resources(deployment), []).append(deployment.model)
    first = (Job("prepare", "prepare"),) if prepare else ()
    return (*first, *_model_jobs(alike.items()), Job("score", "score"))


def _model_jobs(alike: Iterable[tuple[Resources, list[str]]]) -> Iterable[Job]:
    for wanted, models in alike:
        size = f"{wanted.nodes}x{wanted.gpus}gpu" if wanted.gpus else "cpu"
        name = models[0] if len(models) == 1 else f"models-{size}"
        yield Job("model", name, tuple(models), wanted)


def resources(deployment: Deployment) -> Resources:
    """Nodes of a deployment, and the GPUs that it takes of the node where it takes most."""
    if not deployment.gpus:
        return Resources(1, 0)
    taken: Counter[str] = Counter()
    for nodes in deployment.hosts:
        for node in nodes:
            taken[node] += deployment.tensor_parallel * deployment.share  # type: ignore[assignment]
    return Resources(len(taken), math.ceil(max(taken.values()) - 1e-9))
