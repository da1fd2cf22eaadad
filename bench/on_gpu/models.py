"""Folders of models without weights, for a machine without internet: real sizes, and tiny ones to rehearse.

Real sizes: configuration as published, the family's processor with its published settings, and a stand-in
tokenizer filled up to the published vocabulary. Texts have somewhat more tokens than with the model's own
tokenizer; frames have as many.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_QWEN_IDS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")


@dataclass(frozen=True)
class Size:
    """A size to measure: the entry of conf/model that it is served by, its family, its published numbers."""

    entry: str
    family: str  # of tests/families
    config: Mapping[str, Any]
    parameters: int  # as published; a slow test compares the configuration with it


SIZES: Mapping[str, Size] = {
    "7b": Size(
        "qwen2_5_vl_7b",
        "qwen_2_5_vl",
        {
            "architectures": ["Qwen2_5_VLForConditionalGeneration"],
            "model_type": "qwen2_5_vl",
            "attention_dropout": 0.0,
            "hidden_act": "silu",
            "hidden_size": 3584,
            "initializer_range": 0.02,
            "intermediate_size": 18944,
            "max_position_embeddings": 128000,
            "max_window_layers": 28,
            "num_attention_heads": 28,
            "num_hidden_layers": 28,
            "num_key_value_heads": 4,
            "rms_norm_eps": 1e-6,
            "rope_theta": 1000000.0,
            "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
            "sliding_window": 32768,
            "use_sliding_window": False,
            "tie_word_embeddings": False,
            "vocab_size": 152064,
            "vision_config": {
                "depth": 32,
                "hidden_act": "silu",
                "hidden_size": 1280,
                "intermediate_size": 3420,
                "num_heads": 16,
                "in_chans": 3,
                "out_hidden_size": 3584,
                "patch_size": 14,
                "spatial_merge_size": 2,
                "spatial_patch_size": 14,
                "temporal_patch_size": 2,
                "window_size": 112,
                "fullatt_block_indexes": [7, 15, 23, 31],
                "tokens_per_second": 2,
            },
        },
        parameters=8_292_166_656,
    ),
    "30b-a3b": Size(
        "qwen3_vl_30b_a3b",
        "qwen_3_vl_moe",
        {
            "architectures": ["Qwen3VLMoeForConditionalGeneration"],
            "model_type": "qwen3_vl_moe",
            "tie_word_embeddings": False,
            "text_config": {
                "model_type": "qwen3_vl_moe_text",
                "attention_bias": False,
                "attention_dropout": 0.0,
                "decoder_sparse_step": 1,
                "head_dim": 128,
                "hidden_act": "silu",
                "hidden_size": 2048,
                "initializer_range": 0.02,
                "intermediate_size": 6144,
                "max_position_embeddings": 262144,
                "mlp_only_layers": [],
                "moe_intermediate_size": 768,
                "norm_topk_prob": True,
                "num_attention_heads": 32,
                "num_experts": 128,
                "num_experts_per_tok": 8,
                "num_hidden_layers": 48,
                "num_key_value_heads": 4,
                "rms_norm_eps": 1e-6,
                "rope_theta": 5000000,
                "rope_scaling": {
                    "mrope_interleaved": True,
                    "mrope_section": [24, 20, 20],
                    "rope_type": "default",
                },
                "vocab_size": 151936,
            },
            "vision_config": {
                "model_type": "qwen3_vl_moe",
                "deepstack_visual_indexes": [8, 16, 24],
                "depth": 27,
                "hidden_act": "gelu_pytorch_tanh",
                "hidden_size": 1152,
                "in_channels": 3,
                "intermediate_size": 4304,
                "num_heads": 16,
                "num_position_embeddings": 2304,
                "out_hidden_size": 2048,
                "patch_size": 16,
                "spatial_merge_size": 2,
                "temporal_patch_size": 2,
            },
        },
        parameters=31_070_754_032,
    ),
}

_REHEARSED = (
    "weight_gib=0.1",
    "max_model_len=8192",
    "max_num_seqs=4",
    "engine_options.kv_cache_memory_bytes=1073741824",
    "long_side=112",
)


def words_of(size: str, folder: Path, tensor_parallel: int, *, rehearse: bool) -> list[str]:
    """Words of the command line that serve the model of `folder` in place of the entry's own."""
    entry = SIZES[size].entry
    settings = [f"source={folder}", "revision=null", f"tensor_parallel={tensor_parallel}", "replicas=1"]
    dummy = [*settings, *(_REHEARSED if rehearse else ())]
    return [
        f"model=[{entry}]",
        f"++model.{entry}.engine_options.load_format=dummy",
        *(f"++model.{entry}.{one}" for one in dummy),
    ]


def write(size: str, folder: Path, *, rehearse: bool) -> str:
    """Write the files of a size, or of its tiny stand-in; return the name of the family that was written."""
    from tests.families.build import BUILDERS, build
    from tests.families.families import FAMILIES, tokenizer

    wanted = SIZES[size]
    if rehearse:  # without torchvision vLLM imports no class of the Qwen families
        family = wanted.family if find_spec("torchvision") else "idefics3"
        build(family, folder)
        return family
    entry = FAMILIES[wanted.family]
    words = tokenizer(entry)
    _, processor = BUILDERS[wanted.family](words)
    processor.chat_template = entry.template
    processor.save_pretrained(folder)
    _fill_up(folder / "tokenizer.json", _vocabulary(wanted.config))
    ids = dict(zip(_QWEN_IDS, words.convert_tokens_to_ids(list(_QWEN_IDS)), strict=True))
    config = {
        **wanted.config,
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "eos_token_id": words.eos_token_id,
        "torch_dtype": "bfloat16",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    return wanted.family


def _vocabulary(config: Mapping[str, Any]) -> int:
    return int(config.get("text_config", config)["vocab_size"])


def _fill_up(path: Path, size: int) -> None:
    """Add words that no text has until the tokenizer knows `size` of them: whatever is sampled has a text."""
    saved = json.loads(path.read_text())
    vocabulary = saved["model"]["vocab"]
    ids = {*vocabulary.values(), *(added["id"] for added in saved["added_tokens"])}
    vocabulary.update({f"Ġunused{number}": number for number in set(range(size)) - ids})
    path.write_text(json.dumps(saved, ensure_ascii=False))
