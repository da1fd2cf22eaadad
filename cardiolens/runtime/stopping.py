"""Graceful stop: after SIGTERM or one Ctrl-C no request starts; requests in flight may end and are written.

Signals reach only the driver; workers on other nodes read the stop request from Ray's key-value store.
"""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_CODE = 75  # EX_TEMPFAIL: running the same command again continues

_requested_at: list[float] = []  # time.monotonic() of the stop request, or empty
_KEY = b"cardiolens-stop"


class StoppedError(Exception):
    """The command was asked to stop before its work was done."""


@contextmanager
def graceful() -> Iterator[None]:
    """Turn SIGTERM and the first Ctrl-C in the block into a stop request; a second Ctrl-C interrupts."""
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    _requested_at.clear()
    install_handlers()
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def install_handlers() -> None:
    """Handle SIGTERM and SIGINT; call again after Ray has started, because Ray replaces the handlers."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    if _requested_at:
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        return
    _requested_at.append(time.monotonic())
    again = "; press Ctrl-C again to end at once" if number == signal.SIGINT else ""
    print(f"stopping: requests in flight may end{again}", file=sys.stderr, flush=True)


def stop_requested() -> bool:
    """Return whether this process was asked to stop."""
    return bool(_requested_at)


def seconds_since() -> float:
    """Return the seconds since this process was asked to stop."""
    return time.monotonic() - _requested_at[0]


def raise_if_stopping() -> None:
    """Raise StoppedError if this process was asked to stop."""
    if stop_requested():
        raise StoppedError("before its work was done; the same command goes on")


def is_connected() -> bool:
    """Return whether this process has joined a Ray cluster; Ray is not imported for it."""
    ray = sys.modules.get("ray")
    return ray is not None and ray.is_initialized()


def notify_workers() -> None:
    """Pass the stop request on to the replicas and readers of this driver, if Ray runs any."""
    if not is_connected():
        return
    from ray.experimental.internal_kv import _internal_kv_put

    _internal_kv_put(_key(), b"1")


def driver_stopping() -> bool:
    """Return whether the driver of this worker was asked to stop; outside Ray, whether this process was."""
    if not is_connected():
        return stop_requested()
    from ray.experimental.internal_kv import _internal_kv_get

    return _internal_kv_get(_key()) is not None


def _key() -> bytes:
    """Return the stop key of this driver; a Ray cluster may run several drivers."""
    import ray

    return _KEY + str(ray.get_runtime_context().get_job_id()).encode()
