"""Spread work over the cores of this machine with worker processes; results keep their order."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from threading import Thread
from typing import Any, TypeVar

from cardiolens.base.errors import RunError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_given: list[Callable[[Any], Any]] = []  # the function, in a worker process


def spread(
    function: Callable[[_Item], _Result], items: Iterable[_Item], *, chunk: int = 1, worth: bool = True
) -> Generator[_Result, None, None]:
    """Yield `function(item)` for each item in order; in this process if `worth` is false or on one core.

    `function` is pickled once per worker process and may cache values there. Items are pickled and consumed
    as workers become free, so that few are in memory. RunError if a worker was killed; if this process is
    killed, its workers end too.
    """
    cores = len(os.sched_getaffinity(0))
    if cores < 2 or not worth:
        yield from map(function, items)
        return
    alone = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, alone, initializer=_begin, initargs=(function,)) as pool:
        waiting: deque[Future[list[_Result]]] = deque()
        remaining = iter(items)
        try:
            while batch := list(islice(remaining, chunk)):
                waiting.append(pool.submit(_each, batch))
                if len(waiting) > cores:
                    yield from waiting.popleft().result()
            for last in waiting:
                yield from last.result()
        except BrokenProcessPool:
            raise RunError(
                "a process of this run was killed, perhaps for lack of memory; free some, and run it again"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin(function: Callable[[Any], Any]) -> None:
    """Set up a worker: keep the function, use one core, and end when the parent process ends."""
    _given.append(function)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when NumPy is imported, with the first task
    Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a started process watches"
    parent.join()
    os._exit(1)


def _each(items: Sequence[Any]) -> list[Any]:
    [function] = _given
    return [function(item) for item in items]
