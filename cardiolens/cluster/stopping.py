"""Ending early in good order: SIGTERM or one Ctrl-C stops feeding, what is in flight may end and is written.

The driver asks (`asked`), its workers on other nodes are told through Ray's own key-value store (`told`).
"""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_CODE = 75  # EX_TEMPFAIL: the same command goes on

_asked_at: list[float] = []  # one moment, or none
_KEY = b"cardiolens-stop"


class StoppedError(Exception):
    """The verb was asked to end before its work was done."""


@contextmanager
def graceful() -> Iterator[None]:
    """Bear SIGTERM and the first Ctrl-C within a block; a second Ctrl-C ends at once."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    _asked_at.clear()
    install_handlers()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def install_handlers() -> None:
    """Take the signals; to be called again after Ray has started, which takes SIGTERM for itself."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    if _asked_at:
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        return
    _asked_at.append(time.monotonic())
    again = "; press Ctrl-C again to end at once" if number == signal.SIGINT else ""
    print(f"stopping: requests in flight may end{again}", file=sys.stderr, flush=True)


def stop_requested() -> bool:
    """Return whether this process was asked to stop."""
    return bool(_asked_at)


def seconds_since() -> float:
    """Seconds since the request to stop."""
    return time.monotonic() - _asked_at[0]


def raise_if_stopping() -> None:
    """StoppedError if this process was asked to stop."""
    if stop_requested():
        raise StoppedError("before its work was done; the same command goes on")


def notify_workers() -> None:
    """Let replicas and readers of this driver know."""
    from ray.experimental.internal_kv import _internal_kv_put

    _internal_kv_put(_key(), b"1")


def driver_stopping() -> bool:
    """In a worker: whether the driver was asked to stop. False outside Ray."""
    import ray

    if not ray.is_initialized():
        return False
    from ray.experimental.internal_kv import _internal_kv_get

    return _internal_kv_get(_key()) is not None


def _key() -> bytes:
    """Name of the flag of this driver alone: a Ray cluster may run several."""
    import ray

    return _KEY + str(ray.get_runtime_context().get_job_id()).encode()
