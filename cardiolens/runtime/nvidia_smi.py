"""What the driver says of the GPUs that this process may use."""

import os
import subprocess
from typing import NamedTuple

_SECONDS = 60.0  # a driver in trouble never answers
_COMMAND = ("nvidia-smi", "--query-gpu=name,memory.free,memory.total", "--format=csv,noheader,nounits")


class Gpu(NamedTuple):
    """A GPU; a memory is None where the driver says `[N/A]`, as of a GPU without its own."""

    name: str
    free_gib: float | None
    total_gib: float | None

    def has_free(self, share: float) -> bool:
        """Return whether a share of its memory is free, or is not known to be taken."""
        return self.free_gib is None or self.total_gib is None or self.free_gib >= share * self.total_gib


def gpus() -> list[Gpu]:
    """Return the GPUs; empty without a driver, or if it does not answer."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    command = (*_COMMAND, *((f"--id={visible}",) if visible else ()))
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = (line.rsplit(",", 2) for line in answer.stdout.splitlines())
    return [Gpu(row[0].strip(), _gib(row[1]), _gib(row[2])) for row in rows if len(row) == 3]


def _gib(mib: str) -> float | None:
    try:
        return float(mib) / 1024
    except ValueError:
        return None
