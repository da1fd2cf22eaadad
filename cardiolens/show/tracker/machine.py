"""Load of the driver's machine and its GPUs, without any name or description of the machine."""

from collections.abc import Sequence
from typing import Any

import psutil


def busy() -> dict[str, float]:
    """Load in percent: processors since the last call; memory, and each GPU and its memory, now."""
    return {
        "machine/cpu_percent": psutil.cpu_percent(),
        "machine/memory_percent": psutil.virtual_memory().percent,
        **{name: share for number, gpu in enumerate(_gpus()) for name, share in _busy_gpu(number, gpu)},
    }


def _gpus() -> Sequence[Any]:
    """NVML handles of the GPUs; empty without an NVIDIA driver or without pynvml."""
    try:
        import pynvml
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
        return [pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return ()


def _busy_gpu(number: int, gpu: Any) -> Sequence[tuple[str, float]]:
    import pynvml

    try:
        rates, memory = pynvml.nvmlDeviceGetUtilizationRates(gpu), pynvml.nvmlDeviceGetMemoryInfo(gpu)
    except pynvml.NVMLError:  # some drivers report no rates, e.g. of a MIG device
        return ()
    return (
        (f"machine/gpu{number}_percent", float(rates.gpu)),
        (f"machine/gpu{number}_memory_percent", round(100 * memory.used / memory.total, 1)),
    )
