"""Size of vLLM's cache of encoder outputs, so that a frame goes through the vision encoder once.

vLLM keeps as many embeddings as a step has tokens (`max_num_batched_tokens`): 64 frames of 256 at 16,384,
while a study has hundreds that its requests show in turn.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vllm.config import VllmConfig

_GPU_SHARE = 0.03  # of its memory: within the tenth that vLLM leaves free, as the cache is not in its account
_CPU_GIB = 1.0
_BYTES = {"torch.float32": 4}
_HALF = 2  # bytes of a number otherwise


def room_on_gpu(gib: float) -> float:
    """GiB for embeddings of an engine that has this much of each GPU's memory; 0 where that is not known."""
    return _GPU_SHARE * gib


def room_on_cpu() -> float:
    """GiB for embeddings of an engine on CPU."""
    return _CPU_GIB


def enlarge(config: "VllmConfig", gib: float) -> None:
    """Let an engine keep as many embeddings as this room holds, and never fewer than vLLM would."""
    scheduler = config.scheduler_config
    scheduler.encoder_cache_size = max(
        scheduler.encoder_cache_size, int(gib * 2**30 / embedding_bytes(config))
    )


def embedding_bytes(config: "VllmConfig") -> int:
    """Bytes that the encoder's output takes for one token of a prompt."""
    model = config.model_config
    vision = getattr(model.hf_config, "vision_config", None)
    layers = 1 + len(getattr(vision, "deepstack_visual_indexes", None) or ())  # Qwen3-VL hands on several
    width: int = model.get_inputs_embeds_size()
    return layers * width * _BYTES.get(str(model.dtype), _HALF)
