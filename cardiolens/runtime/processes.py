"""Spread work over the cores of this machine with worker processes, which end with this process."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache, partial
from itertools import islice
from threading import Thread
from typing import Any, TypeVar

from cardiolens.base.errors import RunError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_given: list[Callable[[Any], Any]] = []  # the function, in a worker process


def spread(
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    *,
    chunk: int = 1,
    worth: bool = True,
    lost: Callable[[_Item], _Result] | None = None,
) -> Generator[_Result, None, None]:
    """Yield `function(item)` for each item in order; in this process if `worth` is false or on one core.

    `function` is pickled once per worker process and may cache values there. Items are pickled and consumed
    as workers become free, so that few are in memory. RunError if a worker was killed; if this process is
    killed, its workers end too.

    With `lost`, all work is done by workers (one, if `worth` is false), and an item that kills its worker
    costs that item alone: its result is `lost(item)`, and the others are done again where they were cut off.
    """
    cores = len(os.sched_getaffinity(0)) if worth else 1
    if lost is not None:
        yield from _guarded(function, items, cores, chunk, lost)
        return
    if cores < 2:
        yield from map(function, items)
        return
    alone = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, alone, initializer=_begin, initargs=(function,)) as pool:
        try:
            results = _submitted(lambda batch: pool.submit(_each, _call_given, batch), items, chunk, cores)
            for _, future in results:
                yield from future.result()
        except BrokenProcessPool:
            raise RunError(
                "a process of this run was killed, perhaps for lack of memory; free some, and run it again"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _submitted(
    submit: Callable[[list[_Item]], "Future[list[_Result]]"], items: Iterable[_Item], chunk: int, most: int
) -> Iterator[tuple[list[_Item], "Future[list[_Result]]"]]:
    """Submit items in batches, and yield each with its future, in order; at most `most` are ahead."""
    remaining = iter(items)
    waiting = deque[tuple[list[_Item], "Future[list[_Result]]"]]()
    while batch := list(islice(remaining, chunk)):
        waiting.append((batch, submit(batch)))
        if len(waiting) > most:
            yield waiting.popleft()
    yield from waiting


def _guarded(
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    cores: int,
    chunk: int,
    lost: Callable[[_Item], _Result],
) -> Iterator[_Result]:
    """Yield results of workers that may die: their batches are then done again, item by item."""
    for batch, future in _submitted(partial(_submit, cores, function), items, chunk, cores):
        try:
            yield from future.result()
        except BrokenProcessPool:
            for item in batch:
                try:
                    yield from _submit(1, function, [item]).result()
                except BrokenProcessPool:
                    yield lost(item)


def _submit(cores: int, function: Callable[[_Item], _Result], batch: list[_Item]) -> "Future[list[_Result]]":
    """Give a batch to the guarded workers; to new ones if one of them has died."""
    try:
        return _guarded_pool(cores).submit(_each, function, batch)
    except BrokenProcessPool:
        _guarded_pool.cache_clear()
        return _guarded_pool(cores).submit(_each, function, batch)


@lru_cache(maxsize=2)
def _guarded_pool(cores: int) -> ProcessPoolExecutor:
    """Workers that are kept for all guarded work of this process, forked from a server of its own."""
    return ProcessPoolExecutor(cores, multiprocessing.get_context("forkserver"), initializer=_begin)


def _each(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    return [function(item) for item in items]


def _call_given(item: Any) -> Any:
    return _given[0](item)


def _begin(function: Callable[[Any], Any] | None = None) -> None:
    """Set up a worker: keep the function, use one core, and end when the parent process ends."""
    if function is not None:
        _given.append(function)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when NumPy is imported, with the first task
    end_with_parent()


def end_with_parent() -> None:
    """Kill this process as soon as its parent has ended, if Python's multiprocessing started it.

    Also a general plugin of vLLM (pyproject.toml), which calls it in each of its processes: a client that is
    killed, or that Ray ends while an engine loads, would leave them behind with the memory of a GPU.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)

    Thread(target=wait, name="end-with-parent", daemon=True).start()
