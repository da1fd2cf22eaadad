"""A verb in a forked process that meets one fault at one change of the disk."""

import ctypes
import errno
import gc
import io
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from cardiolens.base import disk

Kind = Literal["none", "kill", "torn", "full", "once"]
KINDS: Final[tuple[Kind, ...]] = ("kill", "torn", "full", "once")
NEVER: Final = 1 << 30
_SUBREAPER: Final = 36  # prctl's PR_SET_CHILD_SUBREAPER
_ORPHANS_SECONDS: Final = 5.0
_VERB_SECONDS: Final = 120.0
# A full disk still locks, removes and cuts files.
_NEEDS_SPACE: Final = frozenset({"folder", "write", "append", "sync", "rename", "link"})


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at the n-th change of the disk, counted from 1.

    `kill`: SIGKILL just before it. `torn`: half of an append reaches the disk, then SIGKILL. `full`: this
    change and every later one that needs space fail with ENOSPC. `once`: it fails with EIO.
    """

    kind: Kind = "none"
    number: int = NEVER


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: exit code, negative for a signal; its events and output; processes it left."""

    code: int
    events: tuple[str, ...]
    printed: str
    orphans: int


class _Injection:
    """Hook of `cardiolens.base.disk`: notes each event in a file, and has the fault happen at its number."""

    def __init__(self, fault: Fault, noted: int, place: Path) -> None:
        self._fault, self._noted, self._place = fault, noted, place
        self._count = 0
        self._lock = threading.Lock()  # parts are written in threads

    def __call__(self, kind: str, path: Path) -> None:
        with self._lock:
            self._count += 1
            name = path.relative_to(self._place) if path.is_relative_to(self._place) else path
            os.write(self._noted, f"{kind} {name}\n".encode())
            count = self._count
        fault = self._fault
        if fault.kind == "full" and count >= fault.number and kind in _NEEDS_SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        if count != fault.number:
            return
        if fault.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.kind == "once":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        if fault.kind == "torn":
            _tear_next_write(self._noted)


def _tear_next_write(noted: int) -> None:
    write = os.write

    def torn(handle: int, content: bytes) -> int:
        if handle == noted:
            return write(handle, content)
        write(handle, content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    os.write = torn


def adopt_orphans() -> None:
    """Have the orphans of every process below this one become its own children, so that they are seen."""
    if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def run_in_fork(
    verb: Callable[[], int], place: Path, fault: Fault, meanwhile: Callable[[int], None] | None = None
) -> Ended:
    """Run a verb in a forked process with `place` as working folder; `meanwhile(child)` runs in this one.

    TimeoutError if the process does not end.
    """
    events, printed = place.parent / f"{place.name}.events", place.parent / f"{place.name}.printed"
    for path in (events, printed):
        path.unlink(missing_ok=True)
    gc.collect()
    child = os.fork()
    if child == 0:
        _become(verb, place, fault, events, printed)
    if meanwhile is not None:
        meanwhile(child)
    code = _code(child)
    return Ended(
        code, tuple(events.read_text().splitlines()), printed.read_text(errors="replace"), _left_over()
    )


def _become(verb: Callable[[], int], place: Path, fault: Fault, events: Path, printed: Path) -> None:
    """Be the forked process: never returns."""
    code = 99
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        noted, out = os.open(events, flags | os.O_APPEND), os.open(printed, flags)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(place)
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", line_buffering=True)
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", line_buffering=True)
        disk.hooks.append(_Injection(fault, noted, place))
        code = verb()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 98
    except BaseException:  # noqa: BLE001 - the end of this process
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _code(child: int) -> int:
    until = time.monotonic() + _VERB_SECONDS
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError(f"a verb did not end within {_VERB_SECONDS:g} s")


def _left_over() -> int:
    """Wait for orphans to end; return how many are left after five seconds, and end them."""
    until = time.monotonic() + _ORPHANS_SECONDS
    while (orphans := _children()) and time.monotonic() < until:
        _reap()
        time.sleep(0.01)
    for orphan in orphans:
        os.kill(orphan, signal.SIGKILL)
    _reap()
    return len(orphans)


def _children() -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{os.getpid()}/task").glob("*/children")
        for child in task.read_text().split()
    ]


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
