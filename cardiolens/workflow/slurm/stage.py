"""Copy files to the nodes of a model's job before its engines start; see `runtime.staging`."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from cardiolens.base.console import say
from cardiolens.base.errors import RunError
from cardiolens.inference.plan.plan import Plan
from cardiolens.runtime import stopping
from cardiolens.runtime.staging import VARIABLE, Needed, stage
from cardiolens.study.shards import FRAMES_FOLDER


def stage_on_nodes(planned: Plan, model: str) -> None:
    """Copy shards and weights to every node of the Ray cluster in parallel, and print each outcome.

    Does nothing if the job script names no folder for the copies; returns early on a stop request.
    """
    root = os.environ.get(VARIABLE)
    if root is None:
        return
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    needed = tuple(needed_by(planned, model))
    copying = ray.remote(num_cpus=0)(_stage_all)
    waiting = {}
    for node in ray.nodes():
        if node["Alive"]:
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = copying.options(scheduling_strategy=there).remote(needed, Path(root))
            waiting[task] = node["NodeManagerHostname"]
    while waiting and not stopping.stop_requested():
        for task in ray.wait(list(waiting), timeout=1.0)[0]:
            host = waiting.pop(task)
            try:
                lines = ray.get(task)
            except ray.exceptions.RayError as error:
                raise RunError(f"{host} was lost while files were copied to it") from error
            for line in lines:
                say(f"{host}: {line}")


def needed_by(planned: Plan, model: str) -> Iterator[Needed]:
    """Yield the shards of a plan's studies, then the model files that the engine loads."""
    parts = sorted(set(planned.volumes["part"].to_pylist()))
    yield Needed(planned.store.root, tuple(f"{FRAMES_FOLDER}/{part}" for part in parts))
    identity = planned.identities[model]
    spec = next(spec for spec in planned.spec.model if spec.name == model)
    if spec.engine == "vllm" and identity.folder is not None:
        revision = str(identity.facts["revision"])
        of_hub = revision == identity.folder.name  # a commit, not a digest of the files
        yield Needed(identity.folder, tuple(_files(identity.folder)), None if of_hub else revision)


def _files(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            yield name.as_posix()


def _stage_all(needed: Sequence[Needed], root: Path) -> list[str]:
    return [stage(files, root) for files in needed]
