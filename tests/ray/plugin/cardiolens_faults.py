"""A vLLM plugin for tests: faults of the engine that a certain prompt, or its start, brings about.

It is found through its entry point when this folder is on PYTHONPATH, and does nothing unless
CARDIOLENS_TEST_FAULT names faults, separated by semicolons: `die:<tokens>` and `hang:<tokens>` in the
engine's own process at a prompt that holds these tokens; `silent:<text>`, an answer without output to a
prompt that holds this text; `oom`, no memory when the model is loaded.
"""

import os
import signal
import time
from collections.abc import AsyncIterator
from typing import Any


def install() -> None:
    for entry in filter(None, os.environ.get("CARDIOLENS_TEST_FAULT", "").split(";")):
        fault, _, trigger = entry.partition(":")
        if fault == "oom":
            _have_no_memory()
        elif fault == "silent":
            _be_silent(trigger)
        else:
            _stop_at([int(token) for token in trigger.split(",")], fault)


def _stop_at(deadly: list[int], fault: str) -> None:
    from vllm.v1.engine.core import EngineCore

    add_request = EngineCore.add_request

    def add(self: Any, request: Any, *rest: Any) -> None:
        if _contains(list(request.prompt_token_ids), deadly):
            if fault == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(3600)
        add_request(self, request, *rest)

    EngineCore.add_request = add


def _contains(tokens: list[int], part: list[int]) -> bool:
    return any(tokens[start : start + len(part)] == part for start in range(len(tokens) - len(part) + 1))


def _be_silent(text: str) -> None:
    from vllm.v1.engine.async_llm import AsyncLLM

    generate = AsyncLLM.generate

    async def quiet(self: Any, prompt: Any, *rest: Any, **options: Any) -> AsyncIterator[Any]:
        async for output in generate(self, prompt, *rest, **options):
            if text not in prompt["prompt"]:
                yield output

    AsyncLLM.generate = quiet


def _have_no_memory() -> None:
    import torch
    from vllm.v1.worker.worker_base import WorkerWrapperBase

    def load_model(self: Any, *_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    WorkerWrapperBase.load_model = load_model
