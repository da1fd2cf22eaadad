"""vLLM options in a model's file: which ones CardioLens sets itself, and which ones change answers."""

from collections.abc import Mapping

from pydantic import JsonValue

_SET_HERE = {
    "source": "model tokenizer",
    "the name of the model's file": "served_model_name",
    "revision": "revision code_revision tokenizer_revision",
    "the environment variable HF_TOKEN": "hf_token",
    "max_model_len": "max_model_len",
    "max_num_seqs": "max_num_seqs",
    "trust_remote_code": "trust_remote_code",
    "sampling.seed": "seed",
    "adapter": "enable_lora max_lora_rank",
    "budget, of the sweep": "limit_mm_per_prompt",
    "nothing: it reports the device and attention backend": "worker_extension_cls",
    "nothing: CardioLens counts frames by vLLM's statistics": "disable_log_stats",
    "nothing: every model generates": "runner convert",
    "tensor_parallel": "tensor_parallel_size",
    "replicas": """data_parallel_size data_parallel_rank data_parallel_start_rank data_parallel_size_local
        data_parallel_address data_parallel_rpc_port data_parallel_hybrid_lb data_parallel_external_lb
        data_parallel_multi_port_external_lb data_parallel_backend""",
    "the placement, which gives each replica its GPUs; see tensor_parallel and replicas": """
        pipeline_parallel_size prefill_context_parallel_size distributed_executor_backend device_ids nnodes
        node_rank master_addr master_port""",
}
SET_HERE = {name: instead for instead, names in _SET_HERE.items() for name in names.split()}
"""vLLM options that CardioLens sets itself, and the setting to use instead."""

_SAME_ANSWERS = {
    "memory": """gpu_memory_utilization kv_cache_memory_bytes block_size num_gpu_blocks_override
        cpu_offload_gb cpu_offload_params offload_backend
        offload_group_size offload_num_in_group offload_prefetch_step offload_params kv_offloading_size
        kv_offloading_backend skip_mm_profiling enable_sleep_mode enable_cumem_allocator
        mm_ipc_gpu_memory_gb cudagraph_capture_sizes max_cudagraph_capture_size enforce_eager""",
    "caches": """enable_prefix_caching prefix_caching_hash_algo prefix_match_unit mm_processor_cache_gb
        mm_processor_cache_type mm_shm_cache_max_object_size_mb mm_hasher_algorithm mm_tensor_ipc""",
    "batches": """max_num_batched_tokens max_num_scheduled_tokens long_prefill_token_threshold
        enable_chunked_prefill disable_chunked_mm_input async_scheduling stream_interval
        scheduler_reserve_full_isl prefill_schedule_interval""",
    "parallelism": """enable_expert_parallel enable_eplb eplb_config expert_placement_strategy
        all2all_backend mm_encoder_tp_mode decode_context_parallel_size disable_custom_all_reduce
        renderer_num_workers max_parallel_loading_workers numa_bind numa_bind_nodes numa_bind_cpus
        distributed_timeout_seconds cpu_distributed_timeout_seconds attention_backend
        mm_encoder_attn_backend""",
    "loading": """safetensors_load_strategy safetensors_prefetch_num_threads
        safetensors_prefetch_block_size use_tqdm_on_load""",
    "logging": """enable_log_requests aggregate_engine_logging logging_config log_level log_config_file
        show_hidden_metrics_for_version otlp_traces_endpoint collect_detailed_traces kv_cache_metrics
        kv_cache_metrics_sample cudagraph_metrics enable_layerwise_nvtx_tracing enable_mfu_metrics
        enable_logging_iteration_details enable_mm_processor_stats profiler_config
        fail_on_environ_validation shutdown_timeout""",
}
SAME_ANSWERS = frozenset(name for names in _SAME_ANSWERS.values() for name in names.split())
"""Options that change how an engine works, not its answers; every other option counts as changing answers."""


def check_options(options: Mapping[str, JsonValue]) -> None:
    """Raise ValueError for an option that CardioLens sets itself; options unknown to vLLM pass here."""
    for name in options:
        if name in SET_HERE:
            raise ValueError(f"{name} is set by CardioLens; use {SET_HERE[name]}")
    share = options.get("gpu_memory_utilization", 1)
    if not isinstance(share, int | float) or not 0 < share <= 1:
        raise ValueError(f"gpu_memory_utilization is {share!r}; expected a share above 0, at most 1")


def changing_answers(options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the options that belong to a model's identity."""
    return {name: value for name, value in options.items() if name not in SAME_ANSWERS}
