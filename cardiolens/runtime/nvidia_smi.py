"""What the driver says of the GPUs that this process may use."""

import os
import subprocess
from collections.abc import Sequence
from typing import Final

_SECONDS: Final = 60.0  # a driver in trouble never answers
_MIB: Final = 1024


def gpu_rows(fields: Sequence[str]) -> list[list[str]]:
    """Return nvidia-smi's cells, one row for each GPU; empty without a driver, or if it does not answer."""
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    only = (f"--id={gpus}",) if gpus else ()
    command = ("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", *only)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    return [row for row in rows if len(row) == len(fields)]


def gib(cell: str) -> float | None:
    """Return a memory that nvidia-smi gives in MiB; None for `[N/A]`, said of a GPU without its own."""
    try:
        return float(cell) / _MIB
    except ValueError:
        return None
