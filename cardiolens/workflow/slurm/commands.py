"""SLURM commands that submission uses; errors repeat SLURM's message in full."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cardiolens.base.errors import InputError, RunError

_FIELDS = "%i|%T|%R|%k"  # job or task id, state, nodes or reason for waiting, comment


@dataclass(frozen=True, slots=True)
class Alive:
    """A job or array task that SLURM still lists."""

    id: str
    state: str  # PENDING, RUNNING, ...
    where: str  # its nodes, or the reason for waiting in parentheses


def submit(script: Path, after: Sequence[str] = (), *, on_success: bool = False) -> str:
    """Queue a batch script behind other jobs and return its job id."""
    words = ["sbatch", "--parsable"]
    if after:
        words.append(f"--dependency={'afterok' if on_success else 'afterany'}:{':'.join(after)}")
        words += ["--kill-on-invalid-dep=yes"] if on_success else []
    return run(*words, str(script)).strip().partition(";")[0]


def rehearse(script: Path) -> None:
    """Test a script with `sbatch --test-only`; RunError with SLURM's message if it could never run."""
    run("sbatch", "--test-only", str(script))


def cancel(ids: Sequence[str]) -> None:
    """Cancel jobs; an empty list is no error."""
    if ids:
        run("scancel", *ids)


def alive(mark: str) -> list[Alive]:
    """Return the live jobs whose comment is `mark`, one entry per array task."""
    jobs = []
    for line in run("squeue", "--noheader", "--array", f"--format={_FIELDS}").splitlines():
        job, state, where, comment = line.strip().split("|", 3)
        if comment == mark:
            jobs.append(Alive(job, state, where))
    return jobs


def partitions() -> dict[str, int]:
    """Return the number of nodes per partition."""
    lines = run("sinfo", "--noheader", "--noconvert", "--format=%R|%D").split()
    counts: dict[str, int] = {}
    for line in lines:
        name, _, nodes = line.partition("|")
        counts[name] = counts.get(name, 0) + int(nodes)
    return counts


def check_partition(name: str | None) -> None:
    """Raise InputError unless every name of a comma-separated list is a partition; None passes."""
    if name is None:
        return
    partition_names = partitions()
    for partition in name.split(","):
        if partition not in partition_names:
            raise InputError(
                f"cluster.partition={partition}: no such partition; choose from {', '.join(partition_names)}"
            )


def hostnames(nodelist: str) -> tuple[str, ...]:
    """Expand a node list: n[1-2] becomes n1, n2."""
    return tuple(run("scontrol", "show", "hostnames", nodelist).split())


def run(*words: str) -> str:
    """Run a SLURM command and return its stdout; RunError with its message if it fails."""
    try:
        process = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise InputError(
            f"{words[0]} is not on this machine; submit from a login node of the cluster, or use "
            "cluster=local with python -m cardiolens.sweep"
        ) from None
    if process.returncode:
        output = " ".join(f"{process.stderr}{process.stdout}".split())
        raise RunError(f"{words[0]} refused ({' '.join(words)}): {output}")
    return process.stdout
