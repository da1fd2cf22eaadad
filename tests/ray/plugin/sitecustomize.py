"""For tests: readers that take CARDIOLENS_TEST_SECONDS to answer, so that a fault finds them at work.

Python imports this module in every process when this folder is on PYTHONPATH; the driver, Ray's workers.
"""

import asyncio
import importlib.util
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from typing import Any

SLOWED = "cardiolens.engine.readers"
SECONDS = float(os.environ.get("CARDIOLENS_TEST_SECONDS", "0"))


class _Slow(MetaPathFinder, Loader):
    """Loads the module of readers as it is, then slows their answers."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != SLOWED:
            return None
        sys.meta_path.remove(self)
        found = importlib.util.find_spec(name)
        assert found is not None
        self._loader: Any = found.loader
        found.loader = self
        return found

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, module: Any) -> None:
        self._loader.exec_module(module)
        answer = module.Reader.answer

        async def slowly(self: Any, ask: Any, pictures: Any) -> Any:
            await asyncio.sleep(SECONDS)
            return await answer(self, ask, pictures)

        module.Reader.answer = slowly


if SECONDS:
    sys.meta_path.insert(0, _Slow())
