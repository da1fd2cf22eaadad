"""Compute what several prompts begin with once, for models with recurrent layers (Qwen3.5's GatedDeltaNet).

Such a layer has one state in place of keys and values of every token, and vLLM can go on from a state only
where it kept one: where a prompt ends, and at borders of blocks of 500 to 900 tokens. Prompts of ours part
behind the last frame, between two borders. So a prompt that ends there is asked first, for one token, and
the requests that begin with it wait for it.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vllm.config import VllmConfig

log = logging.getLogger(__name__)

_MATCH_UNIT = 16  # tokens; divides the blocks of every hybrid model of vLLM, as of models without such layers
_REMEMBERED = 4096  # beginnings; those of the studies in flight are far fewer


def match_finely(config: "VllmConfig") -> bool:
    """Let a hybrid model's prefixes end between borders of blocks; return whether the model is hybrid."""
    if not (config.model_config.is_hybrid and config.cache_config.enable_prefix_caching):
        return False
    if config.cache_config.prefix_match_unit is None:
        config.cache_config.prefix_match_unit = _MATCH_UNIT
    return True


class SharedBeginnings:
    """The beginnings that one engine has computed or is computing, the most recently used ones."""

    def __init__(self) -> None:
        self._computing: OrderedDict[str, asyncio.Future[int]] = OrderedDict()

    async def computed(self, key: str, compute: Callable[[], Awaitable[int]]) -> int:
        """Wait until a beginning is computed; return the tokens that this took, to the first that asks for
        it.

        A failure is not reported here: the request that follows meets it as its own.
        """
        first = key not in self._computing
        if first:
            self._computing[key] = asyncio.ensure_future(_unfailing(compute))
            if len(self._computing) > _REMEMBERED:
                self._computing.popitem(last=False)
        self._computing.move_to_end(key)
        tokens = await asyncio.shield(self._computing[key])  # others wait for it, too
        return tokens if first else 0


async def _unfailing(compute: Callable[[], Awaitable[int]]) -> int:
    try:
        return await compute()
    except Exception as error:  # noqa: BLE001 - vLLM and processors may raise anything
        log.debug("a shared beginning was not computed: %s", error)
        return 0
