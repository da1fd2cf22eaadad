"""What a vLLM worker reports of its numerics; imported by vLLM's own processes."""

from typing import Any


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
