"""Starting an engine on GPUs that another one has just left, or still shares."""

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

_PATIENCE = 60.0  # seconds; the engine of an earlier wave is gone before, or will not go
_QUERY = ("nvidia-smi", "--query-gpu=memory.free,memory.total", "--format=csv,noheader,nounits")


@contextmanager
def turn_on(share: float) -> Iterator[None]:
    """Engines that share a GPU start one after another: vLLM measures what is free while it starts."""
    if share in (0.0, 1.0):
        yield
        return
    with lock_of(os.environ.get("CUDA_VISIBLE_DEVICES", "")).open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def lock_of(gpus: str) -> Path:
    """The file that is locked while an engine starts on these GPUs."""
    return Path(tempfile.gettempdir()) / f"cardiolens-gpu-{os.getuid()}-{gpus.replace(',', '-')}.lock"


def wait_for_memory(utilization: float, patience: float = _PATIENCE) -> None:
    """Until this process's GPUs have free what the engine will ask for; after that vLLM says what it sees.

    Ray gives a GPU to the next actor when the last one is gone, which may be before its engine is.
    """
    deadline = time.monotonic() + patience
    while (lacking := _lacking(utilization)) and time.monotonic() < deadline:
        time.sleep(1.0)
    if lacking:
        log.warning("GPU memory that the engine needs is in use by another process: %s", lacking)


def _lacking(utilization: float) -> list[str]:
    """GPUs with too little free; none where no driver answers."""
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    only = (f"--id={gpus}",) if gpus else ()
    try:
        said = subprocess.run((*_QUERY, *only), capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [line for line in said.splitlines() if not _enough(line, utilization)]


def _enough(line: str, utilization: float) -> bool:
    free, total = (float(part) for part in line.split(","))
    return free >= utilization * total
