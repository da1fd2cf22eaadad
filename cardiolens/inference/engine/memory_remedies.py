"""Remedies for an engine that did not start because memory was short, in terms of a model's settings."""

_DIVIDE = "divide the model over more GPUs (tensor_parallel)"
_RAISE = "raise gpu_memory_utilization (without GPUs: kv_cache_gib)"
_REMEDIES = {
    "out of memory": f"{_DIVIDE}, lower max_num_seqs or engine_options.max_num_batched_tokens, or "
    "leave room beside the cache with a lower gpu_memory_utilization",
    "No available memory for the cache blocks": f"{_RAISE}, or {_DIVIDE}",
    "larger than the available KV cache": f"lower max_model_len, {_RAISE}, or {_DIVIDE}",
    "less than desired GPU memory utilization": "another process holds memory there, which nvidia-smi "
    "shows: end it, or lower gpu_memory_utilization",
}
"""By vLLM's and torch's words for what was short."""


def with_remedy(reason: str) -> str:
    """Return the reason of a failed start, and what to change where it was a lack of memory."""
    remedy = next((remedy for words, remedy in _REMEDIES.items() if words in reason), None)
    return reason if remedy is None else f"{' '.join(reason.split())}; {remedy}"
