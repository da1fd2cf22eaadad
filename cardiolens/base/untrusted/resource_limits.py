"""Bounds on what one block of code may take from the machine, for parsers that have none of their own."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def limited(memory: int, seconds: int) -> Iterator[None]:
    """Let the block take so much more memory and processor time; for a worker process that may be lost.

    Beyond the memory MemoryError is raised; beyond the time the process ends by SIGPROF, because a parser in
    C hears no exception. Time of the processor, so that a busy machine costs no file. Only the main thread of
    a process may enter the block.
    """
    before = signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with _memory_limit(memory):
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def _memory_limit(more: int) -> Iterator[None]:
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
