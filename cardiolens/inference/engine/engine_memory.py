"""Memory of a vLLM engine: what is free, the cache of encoded frames, and beginnings that prompts share."""

import asyncio
import logging
import os
import tempfile
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cardiolens.base import disk
from cardiolens.runtime.nvidia_smi import gib, gpu_rows

if TYPE_CHECKING:
    from vllm.config import VllmConfig


log = logging.getLogger(__name__)

_PATIENCE = 60.0  # seconds; an engine of an earlier wave that is still running after this will not end
_LARGE = 76.0  # GiB: a GPU that is sold with 80 GB reports between 76 and 80


@contextmanager
def turn_on(share: float) -> Iterator[None]:
    """Hold the lock of this process's GPUs if the engine has a share of a GPU.

    Engines that share a GPU start one after another, because vLLM measures free memory while it starts.
    """
    if share in (0.0, 1.0):
        yield
        return
    path = lock_of(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    turn = disk.open_log(path)
    try:
        disk.lock(turn, path)
        yield
    finally:
        os.close(turn)


def lock_of(gpus: str) -> Path:
    """Return the path of the file that is locked while an engine starts on these GPUs."""
    return Path(tempfile.gettempdir()) / f"cardiolens-gpu-{os.getuid()}-{gpus.replace(',', '-')}.lock"


def wait_for_memory(utilization: float, patience: float = _PATIENCE) -> None:
    """Wait until this process's GPUs have the free memory that the engine will ask for.

    Ray assigns a GPU to the next actor as soon as the last actor has ended, but that actor's engine process
    may still hold memory. After `patience` seconds a warning is logged, and vLLM reports the shortage.
    """
    deadline = time.monotonic() + patience
    while (full := _full_gpus(utilization)) and time.monotonic() < deadline:
        time.sleep(1.0)
    if full:
        log.warning("GPU memory that the engine needs is in use by another process: %s", full)


def batched_tokens(gib: float) -> int:
    """Return the most tokens that vLLM processes per step, given the engine's GiB of each GPU."""
    return 16_384 if gib >= _LARGE else 8_192


def gpu_gib() -> float:
    """Return the memory in GiB of the smallest of this process's GPUs; 0 if no driver tells it."""
    return min((total for _, total in _free_and_total()), default=0.0)


def _full_gpus(utilization: float) -> list[str]:
    """Return the GPUs with too little free memory in words; empty if no driver tells it."""
    return [
        f"{free:.1f} of {total:.1f} GiB free"
        for free, total in _free_and_total()
        if free < utilization * total
    ]


def _free_and_total() -> list[tuple[float, float]]:
    """Return the free and the total GiB of each of this process's GPUs that tells them."""
    told = [(gib(free), gib(total)) for free, total in gpu_rows(("memory.free", "memory.total"))]
    return [(free, total) for free, total in told if free is not None and total is not None]


_GPU_SHARE = 0.03  # of an engine's GPU memory, at most: frames of a study rarely fill more
_CONTEXT_GIB = 1.0  # CUDA's context, NCCL's buffers and kernels, beside what vLLM accounts for [design]
_PINNED = 1.4  # outputs that running requests hold beyond the cache's room, as a factor: 1.1 to 1.4
_CPU_GIB = 1.0
_BYTES = {"torch.float32": 4}
_HALF = 2  # bytes per number for every other dtype


def room_on_gpu(gib: float, share: float, utilization: float) -> float:
    """Return the GiB for embeddings of an engine with a share of a GPU of so many GiB; 0 if unknown (0).

    vLLM does not account for this cache. It must fit what `utilization`, the part of the GPU for the engine,
    leaves of the share, beside the context.
    """
    wanted, left = _GPU_SHARE * share * gib, (share - utilization) * gib - _CONTEXT_GIB
    room = max(0.0, min(wanted, left / _PINNED))
    if not gib:
        log.warning(
            "the GPU's memory cannot be read, so no more encoder outputs are kept than vLLM keeps by itself, "
            "and frames may be encoded again"
        )
    elif room < wanted:
        log.warning(
            "gpu_memory_utilization leaves %.1f GiB of %.1f beside the engine, so %.2f GiB of encoder "
            "outputs are kept in place of %.2f, and frames may be encoded again; lower it to keep more",
            (share - utilization) * gib,
            share * gib,
            room,
            wanted,
        )
    return room


def room_on_cpu() -> float:
    """Return the GiB for embeddings of an engine on the CPU."""
    return _CPU_GIB


def enlarge(config: "VllmConfig", gib: float) -> None:
    """Let an engine keep as many embeddings as fit in `gib` GiB, and never fewer than vLLM's default."""
    scheduler = config.scheduler_config
    scheduler.encoder_cache_size = max(
        scheduler.encoder_cache_size, int(gib * 2**30 / embedding_bytes(config))
    )


def embedding_bytes(config: "VllmConfig") -> int:
    """Return the bytes of the encoder's output for one prompt token."""
    model = config.model_config
    vision = getattr(model.hf_config, "vision_config", None)
    layers = 1 + len(getattr(vision, "deepstack_visual_indexes", None) or ())  # Qwen3-VL has several
    width: int = model.get_inputs_embeds_size()
    return layers * width * _BYTES.get(str(model.dtype), _HALF)


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
