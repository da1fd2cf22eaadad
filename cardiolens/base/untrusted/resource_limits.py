"""Bounds on what one block of code may take from the machine, for parsers that have none of their own."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def limited(memory: int, seconds: int) -> Iterator[None]:
    """Let the block take so much more memory and so much time; for a worker process that may be lost.

    Beyond the memory MemoryError is raised; beyond the time the process ends by SIGALRM, because a parser in
    C hears no exception. Only the main thread of a process may enter the block.
    """
    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    try:
        with memory_limit(memory):
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def memory_limit(more: int) -> Iterator[None]:
    """Let the address space of this process grow by at most `more` bytes within the block.

    An allocation beyond it raises MemoryError (in C code that does not check, the process ends). The limit
    that held before holds again afterwards; where the system's own hard limit is lower, that one holds.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _address_space() + more
    for bound in (soft, hard):
        if bound != resource.RLIM_INFINITY:
            wanted = min(wanted, bound)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int:
    """Bytes of address space that this process has mapped."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()
