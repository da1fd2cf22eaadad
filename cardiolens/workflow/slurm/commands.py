"""SLURM's commands; errors repeat SLURM's message in full."""

import math
import re
import subprocess
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError, RunError
from cardiolens.config.cluster import SlurmSpec
from cardiolens.storage.places import Run


class Alive(NamedTuple):
    """A job that SLURM still lists."""

    id: str
    name: str  # the model, or the step prepare or score
    state: str  # PENDING, RUNNING, ...
    where: str  # its nodes, or the reason for waiting in parentheses


def submit(script: Path, after: Sequence[str] = (), *, on_success: bool = False) -> str:
    """Queue a batch script behind other jobs and return its job id."""
    words = ["sbatch", "--parsable"]
    if after:
        words.append(f"--dependency={'afterok' if on_success else 'afterany'}:{':'.join(after)}")
        words += ["--kill-on-invalid-dep=yes"] if on_success else []
    return execute(*words, str(script)).strip().partition(";")[0]


def alive(run: Run) -> list[Alive]:
    """Return the live jobs of a run."""
    lines = execute("squeue", "--noheader", "--format=%i|%j|%T|%R|%k").splitlines()
    jobs = (line.strip().split("|", 4) for line in lines)
    mark, suffix = mark_of(run), f".{run.root.name}"
    return [
        Alive(id, name.removesuffix(suffix), *place) for id, name, *place, comment in jobs if comment == mark
    ]


def mark_of(run: Run) -> str:
    """Return the comment that marks every job of a run; job names alone collide between folders."""
    return f"cardiolens:{run.root.name}:{digest_of(str(run.root.resolve()))[:12]}"


def check_partitions(cluster: SlurmSpec) -> list[str]:
    """Return all partitions; InputError if one that is named is absent, or allows less time than is asked.

    SLURM would queue a job of a longer time, and leave it waiting unless the site set EnforcePartLimits.
    """
    lines = execute("sinfo", "--noheader", "--format=%R|%l").split()
    limits = {name: seconds_of(limit) for name, _, limit in (line.partition("|") for line in lines)}
    for partition in cluster.partition:
        names = partition.split(",")
        for name in names:
            if name not in limits:
                legal = ", ".join(limits)
                raise InputError(f"cluster.partition={name}: no such partition; choose from {legal}")
        if seconds_of(cluster.time) > max(limits[name] for name in names):
            raise InputError(
                f"cluster: a job of {cluster.time} is longer than partition {','.join(names)} lets one run, "
                "and would wait for ever; lower cluster.time, or name another partition"
            )
    return list(limits)


def seconds_of(time: str) -> float:
    """Parse a time as SLURM writes it, [days-][hours:]minutes:seconds; infinite if it is none."""
    parts = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", time)
    if parts is None:
        return math.inf  # infinite, n/a
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return timedelta(days, seconds, minutes=minutes, hours=hours).total_seconds()


def execute(*words: str) -> str:
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
