"""Spread work over the cores of this machine with worker processes; results keep their order."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from itertools import islice
from threading import Thread
from typing import Any, TypeVar

from cardiolens.base.errors import RunError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Waiting = deque[tuple[list[_Item], "Future[list[_Result]] | None"]]
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
    cores = len(os.sched_getaffinity(0))
    if lost is not None:
        yield from _guarded(function, iter(items), cores if worth else 1, chunk, lost)
        return
    if cores < 2 or not worth:
        yield from map(function, items)
        return
    alone = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, alone, initializer=_begin, initargs=(function,)) as pool:
        waiting: _Waiting[_Item, _Result] = deque()
        try:
            yield from _results(lambda batch: pool.submit(_each, batch), iter(items), cores, chunk, waiting)
        except BrokenProcessPool:
            raise RunError(
                "a process of this run was killed, perhaps for lack of memory; free some, and run it again"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _results(
    submit: Callable[[list[_Item]], "Future[list[_Result]]"],
    items: Iterator[_Item],
    cores: int,
    chunk: int,
    waiting: "_Waiting[_Item, _Result]",
) -> Iterator[_Result]:
    """Yield results in order; `waiting` holds the batches with results still to come."""
    while batch := list(islice(items, chunk)):
        waiting.append((batch, None))
        waiting[-1] = (batch, submit(batch))
        if len(waiting) > cores:
            yield from _first(waiting)
    while waiting:
        yield from _first(waiting)


def _first(waiting: "_Waiting[_Item, _Result]") -> list[_Result]:
    future = waiting[0][1]
    assert future is not None, "only a batch that could be submitted is waited for"
    results = future.result()
    waiting.popleft()
    return results


def _guarded(
    function: Callable[[_Item], _Result],
    items: Iterator[_Item],
    cores: int,
    chunk: int,
    lost: Callable[[_Item], _Result],
) -> Iterator[_Result]:
    """Yield results of workers that may die: their batches are then done again, item by item."""
    over = False
    while not over:
        waiting: _Waiting[_Item, _Result] = deque()
        submit = _submitter(_guarded_pool(cores), function)
        try:
            yield from _results(submit, items, cores, chunk, waiting)
            over = True
        except BrokenProcessPool:
            _guarded_pool.cache_clear()
            for batch, future in waiting:
                if future is not None and future.done() and future.exception() is None:
                    yield from future.result()
                else:
                    yield from _one_by_one(function, batch, lost)


def _one_by_one(
    function: Callable[[_Item], _Result], items: Sequence[_Item], lost: Callable[[_Item], _Result]
) -> Iterator[_Result]:
    """Yield the results of items; each item may cost its worker."""
    for item in items:
        try:
            [result] = _guarded_pool(1).submit(_apply, function, [item]).result()
        except BrokenProcessPool:
            _guarded_pool.cache_clear()
            result = lost(item)
        yield result


@lru_cache(maxsize=2)
def _guarded_pool(cores: int) -> ProcessPoolExecutor:
    """Workers that are kept for all guarded work of this process, forked from a server of its own."""
    return ProcessPoolExecutor(cores, multiprocessing.get_context("forkserver"), initializer=_begin)


def _submitter(
    pool: ProcessPoolExecutor, function: Callable[[_Item], _Result]
) -> Callable[[list[_Item]], Future[list[_Result]]]:
    return lambda batch: pool.submit(_apply, function, batch)


def _apply(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    return [function(item) for item in items]


def _begin(function: Callable[[Any], Any] | None = None) -> None:
    """Set up a worker: keep the function, use one core, and end when the parent process ends."""
    if function is not None:
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
