"""A vLLM plugin for tests: the engine's own process dies, or hangs, when it is given a certain prompt.

It is found through its entry point when this folder is on PYTHONPATH, and does nothing unless
CARDIOLENS_TEST_FAULT is `die:<text>` or `hang:<text>`; the text is compared with the prompt's tokens.
"""

import os
import signal
import time
from typing import Any


def install() -> None:
    fault, _, tokens = os.environ.get("CARDIOLENS_TEST_FAULT", "").partition(":")
    if not fault:
        return
    from vllm.v1.engine.core import EngineCore

    deadly = [int(token) for token in tokens.split(",")]
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
