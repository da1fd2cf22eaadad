"""Terminal output of the jobs of a run."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from cardiolens.base.console import console, say
from cardiolens.config.cluster import SlurmSpec
from cardiolens.inference.placement.placement import Deployment
from cardiolens.workflow.slurm.jobs import Job


def show_jobs(
    jobs: Sequence[Job], deployments: Sequence[Deployment], cluster: SlurmSpec, *, planned: bool
) -> None:
    """Print one row per job, with GPU hours if the requests are known."""
    hours = {deployment.model: deployment.gpu_hours for deployment in deployments}
    most = {deployment.model: deployment.gpus * deployment.most_seconds / 3600 for deployment in deployments}
    table = Table(title="jobs", title_justify="left")
    for name in (
        "job",
        "models",
        "nodes",
        "GPUs per node",
        "CPUs per node",
        "time limit",
        "GPU hours",
        "at most",
    ):
        table.add_column(name, justify="left" if name in ("job", "models") else "right")
    for job in jobs:
        limit = cluster.time if job.step == "model" else cluster.cpu_time
        costs = (sum(of.get(model, 0.0) for model in job.models) for of in (hours, most))
        gpu_hours = (
            "-" if not job.resources.gpus else f"{cost:.2g}" if planned else "unknown" for cost in costs
        )
        cpus = job.resources.cpus if job.step == "model" else cluster.cpu_cpus
        size = str(job.resources.nodes), str(job.resources.gpus), str(cpus)
        table.add_row(job.name, ", ".join(job.models) or "-", *size, limit, *gpu_hours)
    console.print(table)
    if not planned:
        say("GPU hours are not known before the studies are prepared: python -m cardiolens.prepare ...")


def show_scripts(scripts: Mapping[Job, str]) -> None:
    """Print every script in full."""
    for job, script in scripts.items():
        for line in ("", f"# ---- {job.name}.sbatch", *script.splitlines()):
            say(line)
