"""Memory of a vLLM engine, the cache of encoded frames, and what its workers report of their numerics."""

import time
from typing import TYPE_CHECKING, Any

from cardiolens.runtime.nvidia_smi import gpus

if TYPE_CHECKING:
    from vllm.config import VllmConfig

_PATIENCE = 60.0  # seconds; an engine of an earlier model that is still running after this will not end
_CACHE = 0.03  # of a GPU's memory, at most: frames of a study rarely fill more
_CONTEXT_GIB = 1.0  # CUDA's context, NCCL's buffers and kernels, beside what vLLM accounts for [design]
_PINNED = 1.4  # outputs that running requests hold beyond the cache's room, as a factor: 1.1 to 1.4
_CPU_GIB = 1.0
_MATCH_UNIT = 16  # tokens; divides the blocks of every hybrid model of vLLM


def wait_for_memory(utilization: float, patience: float = _PATIENCE) -> None:
    """Wait until this process's GPUs have the free memory that the engine will ask for.

    Ray assigns a GPU to the next actor as soon as the last actor has ended, but that actor's engine process
    may still hold memory. After `patience` seconds vLLM reports the shortage.
    """
    deadline = time.monotonic() + patience
    while not all(gpu.has_free(utilization) for gpu in gpus()) and time.monotonic() < deadline:
        time.sleep(1.0)


def gpu_gib() -> float:
    """Return the memory in GiB of the smallest of this process's GPUs; 0 if no driver reports it."""
    return min((gpu.total_gib for gpu in gpus() if gpu.total_gib is not None), default=0.0)


def encoder_room(gib: float, utilization: float) -> float:
    """Return the GiB for outputs of the vision encoder on a GPU of this size; 0 if the size is unknown (0).

    vLLM does not account for this cache: it must fit beside the engine's part of the GPU and the context.
    """
    return max(0.0, min(_CACHE * gib, ((1 - utilization) * gib - _CONTEXT_GIB) / _PINNED))


def tune(config: "VllmConfig", room: float | None) -> None:
    """Set what vLLM has no option for, or no fitting default.

    The encoder's outputs of as many frames are kept as fit in `room` GiB (None: on a processor), and never
    fewer than by vLLM's default. The prefixes of a hybrid model may end between the borders of its blocks.
    """
    scheduler, gib = config.scheduler_config, _CPU_GIB if room is None else room
    embeddings = int(gib * 2**30 / _embedding_bytes(config))
    scheduler.encoder_cache_size = max(scheduler.encoder_cache_size, embeddings)
    cache = config.cache_config
    if config.model_config.is_hybrid and cache.enable_prefix_caching and cache.prefix_match_unit is None:
        cache.prefix_match_unit = _MATCH_UNIT


def _embedding_bytes(config: "VllmConfig") -> int:
    """Return the bytes of the encoder's output for one prompt token."""
    model = config.model_config
    vision = getattr(model.hf_config, "vision_config", None)
    layers = 1 + len(getattr(vision, "deepstack_visual_indexes", None) or ())  # Qwen3-VL has several
    width: int = model.get_inputs_embeds_size()
    return layers * width * (4 if str(model.dtype) == "torch.float32" else 2)


class WorkerNumerics:
    """Method that vLLM adds to its workers (`worker_extension_cls`)."""

    vllm_config: Any  # of the worker

    def report_numerics(self) -> tuple[str, list[str]]:
        """Return the type of this worker's GPU, or cpu, and the attention backends of its layers."""
        from vllm.platforms import current_platform

        layers = self.vllm_config.compilation_config.static_forward_context.values()
        backends = {
            layer.get_attn_backend().get_name() for layer in layers if hasattr(layer, "get_attn_backend")
        }
        return current_platform.get_device_name(), sorted(backends)
