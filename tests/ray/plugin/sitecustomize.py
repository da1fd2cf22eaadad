"""For tests: readers that take CARDIOLENS_TEST_SECONDS to answer, so that a fault finds them at work.

CARDIOLENS_TEST_KILL is a part of the path of a file: the process that writes it is killed as the file is
written and has not its name yet. Python imports this module in every process when this folder is on
PYTHONPATH; the driver, Ray's workers.
"""

import asyncio
import importlib.util
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from typing import Any

SECONDS = float(os.environ.get("CARDIOLENS_TEST_SECONDS", "0"))
KILLED_AT = os.environ.get("CARDIOLENS_TEST_KILL", "")


class _Changed(MetaPathFinder, Loader):
    """Loads a module as it is, then changes it."""

    def __init__(self, name: str, change: Callable[[Any], None]) -> None:
        self._name = name
        self._change = change

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        found = importlib.util.find_spec(name)
        self._loader: Any = found.loader
        found.loader = self
        return found

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, module: Any) -> None:
        self._loader.exec_module(module)
        self._change(module)


def _slow(readers: Any) -> None:
    answer = readers.Simulated.answer

    async def slowly(self: Any, ask: Any, pictures: Any) -> Any:
        await asyncio.sleep(SECONDS)
        return await answer(self, ask, pictures)

    readers.Simulated.answer = slowly


def _deadly(disk: Any) -> None:
    atomic = disk.atomic

    @contextmanager
    def deadly(path: Path) -> Iterator[Path]:
        with atomic(path) as temporary:
            yield temporary
            if KILLED_AT in str(path):
                os.kill(os.getpid(), signal.SIGKILL)

    disk.atomic = deadly


if SECONDS:
    sys.meta_path.insert(0, _Changed("cardiolens.inference.engine.readers", _slow))
if KILLED_AT:
    sys.meta_path.insert(0, _Changed("cardiolens.base.disk", _deadly))
