"""Render batch scripts from the templates in `slurm/`."""

import math
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.base.paths import shipped
from cardiolens.config.cluster import SlurmSpec
from cardiolens.runtime.connect import QUIET_ENVIRONMENT
from cardiolens.runtime.staging import VARIABLE
from cardiolens.runtime.stopping import EXIT_CODE
from cardiolens.storage.places import Run
from cardiolens.workflow.slurm.jobs import Job


@dataclass(frozen=True, slots=True)
class Site:
    """Where scripts run: cluster options, working directory and Python command."""

    cluster: SlurmSpec
    workdir: Path
    python: str


def site_of(cluster: SlurmSpec) -> Site:
    """Return the site with this process's working directory, and its Python unless one is configured."""
    site = Site(cluster, Path.cwd(), cluster.python or shlex.quote(sys.executable))
    _check_lines("the working directory", str(site.workdir))
    _check_lines("the path of Python", site.python)
    return site


def templates() -> Path:
    """Return the shipped `slurm/` folder."""
    return shipped("slurm")


def mark_of(run: Run) -> str:
    """Return the comment that marks every job of a run; job names alone collide between folders."""
    return f"cardiolens:{run.root.name}:{digest_of(str(run.root.resolve()))[:12]}"


def script_of(job: Job, run: Run, site: Site) -> str:
    """Render the batch script of a job."""
    environment = Environment(
        loader=FileSystemLoader(templates()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["quote"] = lambda value: shlex.quote(str(value))
    _check_lines("the folder of the run", str(run.root))
    _check_lines("the name of a job", job.name)
    several = job.step == "model" and job.resources.nodes > 1
    template = "model_nodes" if several else job.step
    return environment.get_template(f"{template}.sbatch.j2").render(
        job=job,
        name=f"{job.name}.{run.root.name}",
        mark=mark_of(run),
        run=run.root,
        folder=run.jobs,
        site=site,
        cluster=site.cluster,
        gpus=_gpu_option(job, site.cluster),
        memory_mib=_memory(job, site.cluster),
        quiet=QUIET_ENVIRONMENT,
        stopped=EXIT_CODE,
        staged=VARIABLE,
        warm=site.cluster.warm_cache or run.jobs / "kernels",
    )


def _check_lines(what: str, value: str) -> None:
    """Refuse a value that would start a new line in a script: quotes do not protect comments or options."""
    if not value.isprintable():
        raise InputError(
            f"{what} is {value!r}, which holds a line break or another character that a batch script cannot; "
            "rename it"
        )


def _gpu_option(job: Job, cluster: SlurmSpec) -> str | None:
    if not job.resources.gpus:
        return None
    kind = f"{cluster.gpu_type}:" if cluster.gpu_type else ""
    gpu_request = f"{kind}{job.resources.gpus}"
    return f"--gres=gpu:{gpu_request}" if cluster.gpu_request == "gres" else f"--gpus-per-node={gpu_request}"


def _memory(job: Job, cluster: SlurmSpec) -> int | None:
    gib = cluster.memory_gib if job.step == "model" else cluster.cpu_memory_gib
    return None if gib is None else math.ceil(gib * 1024)
