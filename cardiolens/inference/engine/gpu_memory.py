"""GPU memory at the start of an engine, when another engine has just left the GPUs or shares them."""

import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cardiolens.base import disk
from cardiolens.runtime.nvidia_smi import gib, gpu_rows

log = logging.getLogger(__name__)

_PATIENCE = 60.0  # seconds; an engine of an earlier wave that is still running after this will not end
_LARGE = 76.0  # GiB: a GPU that is sold with 80 GB reports between 76 and 80


@contextmanager
def turn_on(share: float) -> Iterator[None]:
    """Hold the lock of this process's GPUs if the engine has a share of a GPU.

    Engines that share a GPU start one after another, because vLLM measures free memory while it starts.
    """
    if share in (0.0, 1.0):
        yield
        return
    path = lock_of(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    turn = disk.open_log(path)
    try:
        disk.lock(turn, path)
        yield
    finally:
        os.close(turn)


def lock_of(gpus: str) -> Path:
    """Return the path of the file that is locked while an engine starts on these GPUs."""
    return Path(tempfile.gettempdir()) / f"cardiolens-gpu-{os.getuid()}-{gpus.replace(',', '-')}.lock"


def wait_for_memory(utilization: float, patience: float = _PATIENCE) -> None:
    """Wait until this process's GPUs have the free memory that the engine will ask for.

    Ray assigns a GPU to the next actor as soon as the last actor has ended, but that actor's engine process
    may still hold memory. After `patience` seconds a warning is logged, and vLLM reports the shortage.
    """
    deadline = time.monotonic() + patience
    while (full := _full_gpus(utilization)) and time.monotonic() < deadline:
        time.sleep(1.0)
    if full:
        log.warning("GPU memory that the engine needs is in use by another process: %s", full)


def batched_tokens(gib: float) -> int:
    """Return the most tokens that vLLM processes per step, given the engine's GiB of each GPU."""
    return 16_384 if gib >= _LARGE else 8_192


def gpu_gib() -> float:
    """Return the memory in GiB of the smallest of this process's GPUs; 0 if no driver tells it."""
    return min((total for _, total in _free_and_total()), default=0.0)


def _full_gpus(utilization: float) -> list[str]:
    """Return the GPUs with too little free memory in words; empty if no driver tells it."""
    return [
        f"{free:.1f} of {total:.1f} GiB free"
        for free, total in _free_and_total()
        if free < utilization * total
    ]


def _free_and_total() -> list[tuple[float, float]]:
    """Return the free and the total GiB of each of this process's GPUs that tells them."""
    told = [(gib(free), gib(total)) for free, total in gpu_rows(("memory.free", "memory.total"))]
    return [(free, total) for free, total in told if free is not None and total is not None]
