"""Configuration of the Ray cluster, and of the SLURM cluster that may start it."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from cardiolens.config.base import Gib, GivenPath, Positive, Rate, Spec

_SCRATCH_CHARACTERS = 32  # Ray puts sockets below it; the path of a socket may have 107


def _quoted(value: object) -> object:
    """Refuse a number: YAML reads an unquoted 12:00:00 as seconds, which SLURM would take for minutes."""
    if isinstance(value, int):
        raise ValueError("must be hours, minutes and seconds in quotes, e.g. '12:00:00'")
    return value


Duration = Annotated[str, BeforeValidator(_quoted), Field(pattern=r"^(\d+-)?\d+:\d\d:\d\d$")]
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$")]
Word = Annotated[str, Field(pattern=r"^[^\s#]+$")]


class ClusterSpec(Spec):
    """The Ray cluster that runs the stream; its size is declared to plan for another machine."""

    address: str | None = None  # None: start one on this machine
    object_store_gib: Gib | None = None  # None: Ray's own share of the memory that is free
    nodes: Positive = 1  # how many there are
    gpus: Positive | None = None  # of each node; None: as found
    gpu_memory_gib: Gib | None = None  # of each GPU; None: as found
    prefill_rate: Rate = 80_000.0  # of one GPU: prompt tokens/s x billions of parameters
    decode_rate: Rate = 16_000.0  # of one GPU: output tokens/s x billions of parameters
    grace_seconds: Annotated[float, Field(gt=0)] = 30.0  # after SIGTERM or Ctrl-C, for requests in flight


class SlurmSpec(ClusterSpec):
    """The resources that jobs request from SLURM, and the environment of a node.

    `nodes` and `gpus` limit the job of one model.
    """

    scheduler: Literal["slurm"] = "slurm"  # makes the sweep one that can be submitted
    partition: Word | None = None  # of model jobs; None: the cluster's default
    cpu_partition: Word | None = None  # of preparing and scoring; None: the same as `partition`
    account: Word | None = None  # null: the cluster's default
    qos: Word | None = None  # null: the cluster's default
    constraint: Word | None = None  # e.g. a100|h100
    exclude: Word | None = None  # nodes never to use, e.g. n[03,07]
    gpu_request: Literal["gpus-per-node", "gres"] = "gpus-per-node"  # the option for GPU requests
    gpu_type: Word | None = None  # e.g. a100, as SLURM calls it
    time: Duration = "12:00:00"  # of a model job
    cpus: Positive = 8  # of each node of a model job
    memory_gib: Gib | None = None  # of each node of a model job; None: the partition's default
    cpu_time: Duration = "04:00:00"  # of preparing and of scoring
    cpu_cpus: Positive = 8  # of preparing and of scoring
    cpu_memory_gib: Gib | None = None  # of preparing and of scoring; null: the partition's
    signal_seconds: Positive = 120  # before the time limit: SLURM signals a model job to stop
    max_restarts: Positive = 20  # of one model job: preemptions, time limits and lost nodes together
    python: Line | None = None  # the command on a node, e.g. in a container; None: the submitting Python
    setup: tuple[str, ...] = ()  # shell lines before all else, e.g. module load cuda
    sbatch: tuple[
        Annotated[str, Field(pattern=r"^--[^\x00-\x1f\x7f]*$")], ...
    ] = ()  # further options of every job
    scratch: GivenPath = Path("/tmp")  # a folder local to each node
    stage: bool = False  # copy shards and weights to each node's scratch before its engines start
    # compiled kernels to start from; the first job that ends successfully fills it
    warm_cache: GivenPath | None = None

    @field_validator("scratch")
    @classmethod
    def _short(cls, value: Path) -> Path:
        if not value.is_absolute() or len(str(value)) > _SCRATCH_CHARACTERS:
            raise ValueError(
                f"must be an absolute path of at most {_SCRATCH_CHARACTERS} characters: sockets lie below it"
            )
        return value
