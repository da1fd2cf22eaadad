"""The busy share of GPUs, sampled through NVML while something runs."""

import threading
import time
from typing import Any

_EVERY = 0.1  # seconds


class Gpus:
    """The GPUs of this machine, sampled until closed; none, with a reason, where NVML does not answer."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.reason = ""
        self._samples: list[tuple[float, list[float]]] = []  # time, and the busy share of each GPU
        self._over = threading.Event()
        try:
            self._nvml = _nvml()
            self._nvml.nvmlInit()
            count = self._nvml.nvmlDeviceGetCount()
            self._handles = [self._nvml.nvmlDeviceGetHandleByIndex(number) for number in range(count)]
            self.names = [_text(self._nvml.nvmlDeviceGetName(handle)) for handle in self._handles]
        except Exception as error:  # noqa: BLE001 - no driver, no library, no permission: all mean the same
            self.reason = f"{type(error).__name__}: {error}"
            return
        self._sampler = threading.Thread(target=self._sample, name="NVML", daemon=True)
        self._sampler.start()

    def busy(self, since: float, until: float, gpus: int) -> float | None:
        """Mean share of the time in which the first GPUs ran a kernel; None without samples."""
        seen = [shares[:gpus] for at, shares in self._samples if since <= at <= until]
        shares = [share for sample in seen for share in sample]
        return sum(shares) / len(shares) if shares else None

    def close(self) -> None:
        self._over.set()
        if self.names:
            self._sampler.join()

    def _sample(self) -> None:
        while not self._over.wait(_EVERY):
            rates = [self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100 for handle in self._handles]
            self._samples.append((time.time(), rates))


def _nvml() -> Any:
    try:
        import pynvml
    except ImportError:
        from vllm.third_party import pynvml
    return pynvml


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name
