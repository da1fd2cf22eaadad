"""Enlarge vLLM's cache of encoder outputs, so that each frame passes the vision encoder only once.

By default vLLM keeps as many embeddings as a step has tokens (`max_num_batched_tokens`). 16,384 tokens hold
64 frames of 256 tokens, but the requests of one study show hundreds of frames.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vllm.config import VllmConfig

_GPU_SHARE = 0.03  # of GPU memory: vLLM does not account for this cache, so it must fit the free tenth
_CPU_GIB = 1.0
_BYTES = {"torch.float32": 4}
_HALF = 2  # bytes per number for every other dtype


def room_on_gpu(gib: float) -> float:
    """Return the GiB for embeddings, given the engine's GiB of each GPU; 0 if these are unknown (0)."""
    return _GPU_SHARE * gib


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
