"""SLURM commands that submission uses; errors repeat SLURM's message in full."""

import math
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cardiolens.base.errors import InputError, RunError

_FIELDS = "%i|%T|%R|%k"  # job id, state, nodes or reason for waiting, comment
_UNITS = (1, 60, 3600)  # of the parts of a time limit, from its end


@dataclass(frozen=True, slots=True)
class Alive:
    """A job that SLURM still lists."""

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
    """Return the live jobs whose comment is `mark`."""
    jobs = []
    for line in run("squeue", "--noheader", f"--format={_FIELDS}").splitlines():
        job, state, where, comment = line.strip().split("|", 3)
        if comment == mark:
            jobs.append(Alive(job, state, where))
    return jobs


def partitions() -> dict[str, float]:
    """Return the time limit in seconds of each partition, infinite without one."""
    lines = run("sinfo", "--noheader", "--format=%R|%l").split()
    return {name: seconds_of(limit) for name, _, limit in (line.partition("|") for line in lines)}


def check_partition(option: str, names: str | None, time: str) -> None:
    """InputError for a partition that is not there, or a time beyond the limits of all that are named.

    SLURM queues a job of a longer time, and leaves it waiting for ever unless the site set EnforcePartLimits.
    """
    limits = partitions() if names else {}
    for name in names.split(",") if names else ():
        if name not in limits:
            raise InputError(f"cluster.{option}={name}: no such partition; choose from {', '.join(limits)}")
    if names and seconds_of(time) > max(limits[name] for name in names.split(",")):
        raise InputError(
            f"cluster: a job of {time} is longer than partition {names} lets one run, and would wait for "
            "ever; lower cluster.time or cluster.cpu_time, or name another partition"
        )


def seconds_of(time: str) -> float:
    """Parse a SLURM time, [days-]hours:minutes:seconds or minutes[:seconds]; infinite if it is none."""
    days, _, clock = time.rpartition("-")
    parts = clock.split(":")
    if not all(part.isdecimal() for part in (*parts, days or "0")):
        return math.inf  # infinite, UNLIMITED, n/a
    if days or len(parts) == 1:
        parts += ["0"] * ((3 if days else 2) - len(parts))
    return int(days or 0) * 86_400 + sum(
        int(part) * unit for part, unit in zip(parts[::-1], _UNITS, strict=False)
    )


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
