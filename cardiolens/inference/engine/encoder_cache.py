"""Enlarge vLLM's cache of encoder outputs, so that each frame passes the vision encoder only once.

By default vLLM keeps as many embeddings as a step has tokens (`max_num_batched_tokens`). 16,384 tokens hold
64 frames of 256 tokens, but the requests of one study show hundreds of frames.
"""

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vllm.config import VllmConfig

log = logging.getLogger(__name__)

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
