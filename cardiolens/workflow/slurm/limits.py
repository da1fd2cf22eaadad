"""Check requested job resources against the limits of the partitions.

SLURM queues a job whose time exceeds the partition's limit, and leaves it waiting for ever unless the site
set EnforcePartLimits. For other excesses SLURM says only that a node configuration is not available.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cardiolens.base.errors import InputError
from cardiolens.config.cluster import SlurmSpec
from cardiolens.workflow.slurm.commands import run
from cardiolens.workflow.slurm.jobs import Job

_FIELDS = "%P|%l|%D|%c|%m|%G"  # partition, time limit, nodes; per node: CPUs, MiB, generic resources
# Else nodes that differ are one line with the least of each, and 1024 is 1K.
_EACH_KIND = ("--exact", "--noconvert")
_GPUS = re.compile(r"gpu:(?:(?P<kind>[^:,()]+):)?(?P<number>\d+)")
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<parts>\d+(?::\d+){0,2})")


@dataclass(frozen=True, slots=True)
class Nodes:
    """Identical nodes of one partition."""

    partition: str
    is_default: bool
    seconds: float  # time limit of a job; infinite without one
    number: int
    cpus: int
    memory_mib: int
    gpus: tuple[tuple[str, int], ...]  # (kind, count) per node; kind is "" if the site names none

    def gpus_of(self, kind: str | None) -> int:
        """Return the number of GPUs of a kind per node; of all kinds for None."""
        return sum(number for name, number in self.gpus if kind is None or name == kind)


def check_limits(jobs: Sequence[Job], cluster: SlurmSpec) -> None:
    """Raise InputError naming the option that requests more than any of a job's partitions has."""
    known = list(read_nodes(run("sinfo", "--noheader", *_EACH_KIND, f"--format={_FIELDS}")))
    for job in jobs:
        for_model = job.step == "model"
        partition = cluster.partition if for_model else cluster.cpu_partition or cluster.partition
        refused = []
        for name, nodes in _partitions(known, partition).items():
            wrong = next(_beyond(job, cluster, name, nodes), None)
            if wrong is None:
                break
            refused.append(wrong)
        else:
            if refused:  # one fitting partition is enough
                raise InputError("; ".join(refused))


def read_nodes(printed: str) -> Iterator[Nodes]:
    """Parse the nodes that `sinfo` prints in the format `_FIELDS`."""
    for line in printed.splitlines():
        partition, limit, number, cpus, memory, generic = line.strip().split("|", 5)
        yield Nodes(
            partition.rstrip("*"),
            partition.endswith("*"),
            seconds_of(limit),
            int(number),
            int(cpus.rstrip("+")),
            int(memory.rstrip("+")),
            tuple((match["kind"] or "", int(match["number"])) for match in _GPUS.finditer(generic)),
        )


def seconds_of(time: str) -> float:
    """Parse a SLURM time into seconds: minutes, minutes:seconds, hours:minutes:seconds or days-hours..."""
    match = _TIME.fullmatch(time)
    if match is None:
        return math.inf  # infinite, UNLIMITED, n/a
    parts = [int(part) for part in match["parts"].split(":")]
    if match["days"] is not None:  # hours come first
        hours, minutes, seconds = [*parts, 0, 0][:3]
        return ((int(match["days"]) * 24 + hours) * 60 + minutes) * 60 + seconds
    hours, minutes, seconds = {1: [0, *parts, 0], 2: [0, *parts], 3: parts}[len(parts)]
    return (hours * 60 + minutes) * 60 + seconds


def _partitions(known: Sequence[Nodes], partition_names: str | None) -> dict[str, list[Nodes]]:
    """Return the nodes of each named partition; without names, of the default partition."""
    partition_list = None if partition_names is None else partition_names.split(",")
    chosen: dict[str, list[Nodes]] = {}
    for nodes in known:
        if nodes.is_default if partition_list is None else nodes.partition in partition_list:
            chosen.setdefault(nodes.partition, []).append(nodes)
    return chosen


def _beyond(job: Job, cluster: SlurmSpec, partition: str, nodes: Sequence[Nodes]) -> Iterator[str]:
    """Yield an error for each request of a job that a partition cannot meet, naming the option."""
    is_model = job.step == "model"
    option, time = ("time", cluster.time) if is_model else ("cpu_time", cluster.cpu_time)
    longest = max(of.seconds for of in nodes)
    if seconds_of(time) > longest:
        yield (
            f"cluster.{option}={time}: partition {partition} ends jobs after {_clock(longest)}; a longer one "
            f"would wait for ever; give at most {_clock(longest)}, or another partition"
        )
    # Each request narrows the nodes: what one node has of GPUs and another of CPUs, a job gets from neither.
    kind = cluster.gpu_type
    suited = [of for of in nodes if not is_model or of.gpus_of(kind) >= job.resources.gpus]
    if not suited:
        most = max(of.gpus_of(kind) for of in nodes)
        kinds = sorted({name for of in nodes for name, _ in of.gpus if name})
        request = f"{', '.join(job.models)}: {job.resources.gpus} GPUs a node"
        of_kind = f" of gpu_type={kind}" if kind else ""
        yield (
            f"{request}, but no node of partition {partition} has more than {most}{of_kind}; lower "
            "cluster.gpus or the model's tensor_parallel, or name another partition"
            + (f" or gpu_type ({', '.join(kinds)})" if kind and kinds else "")
        )
        return
    gpus = f" with {job.resources.gpus} GPUs" if is_model and job.resources.gpus else ""
    option, cpus = ("cpus", job.resources.cpus) if is_model else ("cpu_cpus", cluster.cpu_cpus)
    most_cpus = max(of.cpus for of in suited)
    if most_cpus < cpus and is_model and cluster.cpus is None:
        yield (
            f"{', '.join(job.models)}: {cpus} CPUs a node for its engines (vLLM needs 2 for each and one for "
            f"each GPU), but no node of partition {partition}{gpus} has more than {most_cpus}; lower "
            f"cluster.gpus, or set cluster.cpus={most_cpus} and have engines wait for each other"
        )
    elif most_cpus < cpus:
        yield (
            f"cluster.{option}={cpus}: no node of partition {partition}{gpus} has more than {most_cpus} CPUs"
        )
    suited = [of for of in suited if of.cpus >= cpus] or suited
    option, gib = (
        ("memory_gib", cluster.memory_gib) if is_model else ("cpu_memory_gib", cluster.cpu_memory_gib)
    )
    if gib is not None and max(of.memory_mib for of in suited) < gib * 1024:
        most_gib = max(of.memory_mib for of in suited) / 1024
        yield (
            f"cluster.{option}={gib:g}: no node of partition {partition}{gpus} has more than "
            f"{most_gib:.1f} GiB" + (f" and {cpus} CPUs" if len(suited) < len(nodes) else "")
        )
    number = sum(of.number for of in suited if gib is None or of.memory_mib >= gib * 1024)
    if is_model and 0 < number < job.resources.nodes:
        yield (
            f"{', '.join(job.models)}: {job.resources.nodes} nodes{gpus}, but partition {partition} has "
            f"{number}; lower cluster.nodes"
        )


def _clock(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86_400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock
