"""Work spread over the cores of this machine, by processes of its own, with results in order."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from cardiolens.errors import RunError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def spread(
    function: Callable[[_Item], _Result], items: Sequence[_Item], *, chunk: int = 1, worth: bool = True
) -> Iterator[_Result]:
    """Yield the function of each item in order; in this process where it is not worth starting others.

    `function` and items are pickled. RunError where a process was killed.
    """
    cores = min(len(os.sched_getaffinity(0)), -(-len(items) // chunk))
    if cores < 2 or not worth:
        yield from map(function, items)
        return
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        try:
            yield from pool.map(function, items, chunksize=chunk)
        except BrokenProcessPool:
            raise RunError(
                "a process of this run was killed, as by a machine without memory; free some, run it again"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
