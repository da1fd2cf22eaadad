"""Configuration of the Ray cluster, and of a SLURM cluster that may start it."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator

from cardiolens.config.base import Gib, GivenPath, Positive, Spec

_SCRATCH_BYTES = 26  # of the 107 of a socket's path: 68 are Ray's, and 13 the folder of a job, /cl4294967295


def _quoted(value: object) -> object:
    """Refuse a number: YAML reads an unquoted 12:00:00 as seconds, which SLURM would read as minutes."""
    if isinstance(value, int):
        raise ValueError("must be hours, minutes and seconds in quotes, e.g. '12:00:00'")
    return value


Duration = Annotated[str, BeforeValidator(_quoted), Field(pattern=r"^(\d+-)?\d+:\d\d:\d\d$")]
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$")]
Word = Annotated[str, Field(pattern=r"^[^\s#]+$")]
Option = Annotated[str, Field(pattern=r"^--[^\x00-\x1f\x7f]*$")]


class ClusterSpec(Spec):
    """The Ray cluster that runs the stream; declare its size to plan for another machine."""

    address: Annotated[str, Field(pattern=r"\S")] | None = None  # None: start one on this machine
    nodes: Positive = 1  # number of nodes
    gpus: Positive | None = None  # GPUs per node; None: as found
    gpu_memory_gib: Gib | None = None  # memory per GPU; None: as found
    # time for requests in flight after SIGTERM or Ctrl-C
    grace_seconds: Annotated[float, Field(gt=0)] = 30.0


class SlurmSpec(ClusterSpec):
    """Resources that jobs request from SLURM, and the environment of a node.

    `nodes` and `gpus` limit the job of one model.
    """

    # of the jobs, empty: the cluster's default; a second one is that of the prepare and score jobs
    partition: tuple[Word, ...] = Field(default=(), max_length=2)
    gpu_request: Annotated[str, Field(pattern=r"^--\S*\{\}\S*$")] = (
        "--gpus-per-node={}"  # {}: the number of GPUs
    )
    time: Duration = "12:00:00"  # time limit of a job
    grace_seconds: Annotated[float, Field(gt=0, lt=120)] = 30.0  # SLURM's signal comes 120 s before the end
    python: Line | None = None  # Python command on a node, e.g. in a container; None: the submitting Python
    setup: tuple[str, ...] = ()  # shell lines that run first, e.g. module load cuda
    # further sbatch options of every job, e.g. --account=mri, --mem=200G; they take precedence
    sbatch: tuple[Option, ...] = ()
    scratch: GivenPath = Path("/tmp")  # a folder local to each node

    @field_validator("partition", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("scratch")
    @classmethod
    def _short(cls, value: Path) -> Path:
        if not value.is_absolute() or len(os.fsencode(value)) > _SCRATCH_BYTES:
            raise ValueError(
                f"must be an absolute path of at most {_SCRATCH_BYTES} bytes: sockets lie below it"
            )
        return value
