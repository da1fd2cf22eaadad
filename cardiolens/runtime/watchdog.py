"""Watchdog of the Ray cluster of one command: ends what is left of it when the command was killed.

Ray's processes notice a killed driver by themselves, most within seconds, but agents that were just starting
first try to reach the dead cluster for over a minute. The watchdog is a process of its own. A pipe tells it
that the driver is gone; it then kills every process of this user that has the cluster's mark in its
environment. It needs /proc, and does nothing on systems without it.
"""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_MARK = "CARDIOLENS_CLUSTER"
# Ray's agents show a title in `ps` by setproctitle, which else overwrites the environment that /proc shows
_KEEP_ENVIRONMENT = "SPT_NOENV"
_NORMAL_END = b"ended\n"
_GRACE_SECONDS = 2.0  # in which Ray's processes end by themselves, and write their last lines
_FEWEST_LOOKS = 3  # without a process left; a dying raylet may still start one
_LOOK_SECONDS = 0.25
_MOST_BYTES = 4 << 20  # of an environment


@contextmanager
def watched() -> Iterator[str]:
    """Watch a cluster that starts in the block; yields the mark for `marked`.

    Nothing is killed if the block ends, with an error or without: Ray's own shutdown is enough then.
    """
    mark = secrets.token_hex(16)
    with subprocess.Popen(
        [sys.executable, "-I", "-S", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a Ctrl-C in the terminal is not for it
    ) as process:
        assert process.stdin is not None
        process.stdin.write(f"{mark}\n".encode())
        process.stdin.flush()
        try:
            yield mark
        finally:
            with suppress(OSError):  # somebody killed it
                process.stdin.write(_NORMAL_END)
                process.stdin.flush()


@contextmanager
def marked(mark: str) -> Iterator[None]:
    """Mark the processes that start in the block, and those below them."""
    before = os.environ.get(_KEEP_ENVIRONMENT)
    os.environ |= {_MARK: mark, _KEEP_ENVIRONMENT: "1"}
    try:
        yield
    finally:
        del os.environ[_MARK], os.environ[_KEEP_ENVIRONMENT]
        if before is not None:
            os.environ[_KEEP_ENVIRONMENT] = before


def _watch() -> None:
    mark = sys.stdin.buffer.readline().strip()
    is_normal = sys.stdin.buffer.read() == _NORMAL_END  # returns when the pipe is closed
    if is_normal or not mark:
        return
    entry = _MARK.encode() + b"=" + mark
    deadline, looks = time.monotonic() + _GRACE_SECONDS, 0
    while looks < _FEWEST_LOOKS:
        left = _processes_with(entry)
        looks = 0 if left else looks + 1
        if time.monotonic() > deadline:
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


def _processes_with(entry: bytes) -> list[int]:
    pids = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it has ended, or belongs to somebody else
                with (folder / "environ").open("rb") as environment:
                    entries = environment.read(_MOST_BYTES).split(b"\0")
                if entry in entries:
                    pids.append(int(folder.name))
    return pids


if __name__ == "__main__":
    _watch()
