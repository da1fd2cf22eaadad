"""What surrounds a start of vLLM: the threads that it may use, and a second try after a disturbance."""

import logging
import os
from collections.abc import Callable, Mapping
from typing import TypeVar

from cardiolens.inference.engine.memory_remedies import with_remedy
from cardiolens.inference.engine.root_cause import root_cause, written_so_far

log = logging.getLogger(__name__)

_DISTURBED = "Error in memory profiling"  # vLLM's words for free memory that grew while it was measured
_THREADS = "OMP_NUM_THREADS"

Made = TypeVar("Made")


def started(make: Callable[[], Made]) -> Made:
    """Return what `make` makes; RuntimeError with the root cause if it fails.

    An engine that left a shared GPU while vLLM measured the memory there does so once: `make` is then called
    again.
    """
    try:
        return _made(make)
    except RuntimeError as error:
        if _DISTURBED not in str(error):
            raise
        log.warning("another engine left the GPU while memory was measured; starting again (%s)", error)
    return _made(make)


def _made(make: Callable[[], Made]) -> Made:
    written_before = written_so_far()
    try:
        return make()
    except RuntimeError as error:  # often says only that one of vLLM's processes failed
        raise RuntimeError(with_remedy(root_cause(written_before) or str(error))) from error


def use_all_threads() -> None:
    """Undo the single thread that Ray gives an actor without processors; a number of the user's is kept.

    Processes of vLLM inherit it, and would load weights with one thread.
    """
    import ray

    environment = ray.get_runtime_context().runtime_env.get("env_vars") if ray.is_initialized() else None
    if set_by_ray(os.environ, environment or {}):
        del os.environ[_THREADS]


def set_by_ray(environment: Mapping[str, str], ray_environment: Mapping[str, str]) -> bool:
    """Return whether the number of threads is Ray's; `told` is what the driver handed to its workers."""
    return environment.get(_THREADS) == "1" and _THREADS not in ray_environment
