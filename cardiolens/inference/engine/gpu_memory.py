"""Start of an engine on GPUs that another engine has just left or shares."""

import fcntl
import logging
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)

_PATIENCE = 60.0  # seconds; an engine of an earlier wave that is still there then will not go away
_LARGE = 76.0  # GiB: a GPU that is sold with 80 GB reports up to 80 and no less
_QUERY = ("nvidia-smi", "--query-gpu=memory.free,memory.total", "--format=csv,noheader,nounits")


@contextmanager
def turn_on(share: float) -> Iterator[None]:
    """Hold the lock of this process's GPUs if the engine has a share of a GPU.

    Engines that share a GPU start one after another, because vLLM measures free memory while it starts.
    """
    if share in (0.0, 1.0):
        yield
        return
    with lock_of(os.environ.get("CUDA_VISIBLE_DEVICES", "")).open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def lock_of(gpus: str) -> Path:
    """Path of the file that is locked while an engine starts on these GPUs."""
    return Path(tempfile.gettempdir()) / f"cardiolens-gpu-{os.getuid()}-{gpus.replace(',', '-')}.lock"


def wait_for_memory(utilization: float, patience: float = _PATIENCE) -> None:
    """Wait until this process's GPUs have the free memory that the engine will ask for.

    Ray gives a GPU to the next actor as soon as the last actor is gone; the process of that actor's engine
    may still hold memory. After `patience` seconds a warning is logged, and vLLM reports the shortage.
    """
    deadline = time.monotonic() + patience
    while (full := _full_gpus(utilization)) and time.monotonic() < deadline:
        time.sleep(1.0)
    if full:
        log.warning("GPU memory that the engine needs is in use by another process: %s", full)


def batched_tokens(gib: float) -> int:
    """Tokens that vLLM works on in one step, by the memory that the engine has of each GPU."""
    return 16_384 if gib >= _LARGE else 8_192


def gpu_gib() -> float:
    """Memory of the smallest of this process's GPUs, in GiB; 0 where no driver answers."""
    return min((_free_and_total(line)[1] / 1024 for line in _table()), default=0.0)


def _full_gpus(utilization: float) -> list[str]:
    """Lines of nvidia-smi of the GPUs with too little free memory; empty where no driver answers."""
    return [line for line in _table() if not _enough(line, utilization)]


def _table() -> list[str]:
    """Lines of nvidia-smi about this process's GPUs; empty where no driver answers."""
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    only = (f"--id={gpus}",) if gpus else ()
    try:
        table = subprocess.run((*_QUERY, *only), capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return table.splitlines()


def _enough(line: str, utilization: float) -> bool:
    free, total = _free_and_total(line)
    return free >= utilization * total


def _free_and_total(line: str) -> tuple[float, float]:
    free, total = (float(part) for part in line.split(","))
    return free, total
