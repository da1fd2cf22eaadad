"""The jobs of a run: prepare, one for each model, score; and their scripts, of the templates in `slurm/`."""

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cardiolens.base.errors import InputError
from cardiolens.base.paths import shipped
from cardiolens.config.cluster import SlurmSpec
from cardiolens.inference.placement.placement import Deployment
from cardiolens.runtime.connect import QUIET_ENVIRONMENT
from cardiolens.runtime.stopping import EXIT_CODE
from cardiolens.storage.places import Run
from cardiolens.workflow.slurm.commands import mark_of

_FEWEST_CPUS = 8  # of a node: driver, loaders of studies, and a reader
_STREAM_CPUS = 2  # driver, and loaders of studies
_ENGINE_CPUS = 2  # vLLM needs two processors for an engine and one for each of its GPUs


class Job(NamedTuple):
    """One batch script, and what it asks of each of its nodes."""

    step: Literal["prepare", "model", "score"]
    model: str = ""
    nodes: int = 1
    gpus: int = 0
    cpus: int = _FEWEST_CPUS

    @property
    def name(self) -> str:
        """Name of the script file; the job's name appends the run's name."""
        return self.model or self.step


def jobs_of(deployments: Sequence[Deployment], *, prepare: bool) -> tuple[Job, ...]:
    """Return the jobs in dependency order, models in the order of their deployments."""
    first = (Job("prepare"),) if prepare else ()
    return (*first, *map(_model_job, deployments), Job("score"))


def _model_job(deployment: Deployment) -> Job:
    """Return the job of a deployment, with the most GPUs and processors that it needs on a node."""
    if not deployment.gpus:
        return Job("model", deployment.model)
    engines = Counter(node for nodes in deployment.hosts for node in nodes)
    most = max(engines.values())
    gpus = most * deployment.tensor_parallel
    wanted = max(_FEWEST_CPUS, _STREAM_CPUS + most * (_ENGINE_CPUS + deployment.tensor_parallel))
    return Job("model", deployment.model, len(engines), gpus, wanted)


def script_of(job: Job, run: Run, cluster: SlurmSpec) -> str:
    """Render the batch script of a job, for the working directory and the Python of this process."""
    environment = Environment(
        loader=FileSystemLoader(shipped("slurm")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["quote"] = lambda value: shlex.quote(str(value))
    workdir, python = Path.cwd(), cluster.python or shlex.quote(sys.executable)
    named = {"the working directory": workdir, "the path of Python": python}
    for what, value in {**named, "the folder of the run": run.root, "the name of a job": job.name}.items():
        if not str(value).isprintable():  # quotes do not protect comments or options
            raise InputError(
                f"{what} is {str(value)!r}, which holds a line break or another character that a batch "
                "script cannot; rename it"
            )
    template = "model_nodes" if job.nodes > 1 else job.step
    return environment.get_template(f"{template}.sbatch.j2").render(
        job=job,
        name=f"{job.name}.{run.root.name}",
        mark=mark_of(run),
        run=run.root,
        folder=run.jobs,
        workdir=workdir,
        python=python,
        cluster=cluster,
        gpus=cluster.gpu_request.replace("{}", str(job.gpus)) if job.gpus else None,
        quiet=QUIET_ENVIRONMENT,
        stopped=EXIT_CODE,
    )
