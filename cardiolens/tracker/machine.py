"""Load of the driver's machine and its GPUs; not what it is, nor what it is called."""

from collections.abc import Sequence
from typing import Any

import psutil


def busy() -> dict[str, float]:
    """Shares in percent: processors since the last call, memory, each GPU and its memory now."""
    return {
        "machine/cpu_percent": psutil.cpu_percent(),
        "machine/memory_percent": psutil.virtual_memory().percent,
        **{name: share for number, gpu in enumerate(_gpus()) for name, share in _busy_gpu(number, gpu)},
    }


def _gpus() -> Sequence[Any]:
    """Handles of NVML; none where there is no NVIDIA driver or nothing to ask it with."""
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
    except pynvml.NVMLError:  # a driver that does not tell, as of a GPU cut into parts
        return ()
    return (
        (f"machine/gpu{number}_percent", float(rates.gpu)),
        (f"machine/gpu{number}_memory_percent", round(100 * memory.used / memory.total, 1)),
    )
