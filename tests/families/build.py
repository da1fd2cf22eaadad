"""Folders of tiny models: published settings of the processor, a configuration of few parameters.

Settings are those of the transformers version at hand where it holds the published ones as defaults; the
others are written here.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.families.families import FAMILIES, tokenizer

CONTEXT = 32768
WIDTH = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2}
VISION = {"depth": 2, "hidden_size": 128, "num_heads": 2, "intermediate_size": 256, "out_hidden_size": 128}
# Of Qwen2-VL and Qwen2.5-VL, of a frame: their published file is read for videos, too. Of Qwen3-VL, of a
# whole video.
PIXELS = {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 16384}
VIDEO_PIXELS = {"shortest_edge": 4096, "longest_edge": 25165824}

Parts = tuple[Any, Any]  # configuration, processor


def build(name: str, folder: Path) -> None:
    """Write the files of a family's tiny model, without weights."""
    family = FAMILIES[name]
    if name in WITH_CODE:
        WITH_CODE[name](tokenizer(family), folder)
        return
    config, processor = BUILDERS[name](tokenizer(family))
    config.architectures = [family.architecture]
    config.save_pretrained(folder)
    processor.chat_template = family.template
    processor.save_pretrained(folder)


def _text(words: Any, **more: Any) -> dict[str, Any]:
    return {
        **WIDTH,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "vocab_size": len(words),
        "max_position_embeddings": CONTEXT,
        "bos_token_id": words.bos_token_id,
        "eos_token_id": words.eos_token_id,
        "pad_token_id": words.pad_token_id,
        "tie_word_embeddings": False,
        **more,
    }


def _ids(words: Any, **tokens: str) -> dict[str, int]:
    return {name: words.convert_tokens_to_ids(token) for name, token in tokens.items()}


def idefics3(words: Any) -> Parts:
    from cardiolens.inference.models import embedded

    return embedded._config(words), embedded.processor(words)


def gemma_3(words: Any) -> Parts:
    from transformers import Gemma3Config, Gemma3ImageProcessor, Gemma3Processor

    ids = _ids(
        words,
        boi_token_index="<start_of_image>",
        eoi_token_index="<end_of_image>",
        image_token_index="<image_soft_token>",
    )
    vision = WIDTH | {"model_type": "siglip_vision_model", "image_size": 896, "patch_size": 14}
    config = Gemma3Config(text_config=_text(words), vision_config=vision, mm_tokens_per_image=256, **ids)
    images = Gemma3ImageProcessor(size={"height": 896, "width": 896}, do_pan_and_scan=None)
    return config, Gemma3Processor(images, words, image_seq_length=256)


def gemma_4(words: Any) -> Parts:
    from transformers import Gemma4Config, Gemma4ImageProcessor, Gemma4Processor
    from transformers.models.gemma4.feature_extraction_gemma4 import Gemma4AudioFeatureExtractor
    from transformers.models.gemma4.video_processing_gemma4 import Gemma4VideoProcessor

    ids = _ids(
        words,
        boi_token_id="<|image>",
        eoi_token_id="<image|>",
        image_token_id="<|image|>",
        audio_token_id="<|audio|>",
        boa_token_id="<|audio>",
        eoa_token_id="<audio|>",
        video_token_id="<|video|>",
    )
    config = Gemma4Config(
        text_config=_text(
            words, global_head_dim=64, sliding_window=512, vocab_size_per_layer_input=len(words)
        ),
        vision_config=WIDTH
        | {"num_key_value_heads": 2, "head_dim": 64, "patch_size": 16, "default_output_length": 280},
        **ids,
    )
    processor = Gemma4Processor(
        Gemma4AudioFeatureExtractor(), Gemma4ImageProcessor(), words, Gemma4VideoProcessor()
    )
    return config, processor


def _glm(words: Any, config: Any, **more: Any) -> Parts:
    from transformers import Glm4vImageProcessor, Glm4vProcessor, Glm4vVideoProcessor

    ids = _ids(
        words,
        image_token_id="<|image|>",
        video_token_id="<|video|>",
        image_start_token_id="<|begin_of_image|>",
        image_end_token_id="<|end_of_image|>",
        video_start_token_id="<|begin_of_video|>",
        video_end_token_id="<|end_of_video|>",
    )
    rope = {"rope_type": "default", "mrope_section": [8, 12, 12], "partial_rotary_factor": 1.0}
    made = config(text_config=_text(words, rope_parameters=rope, **more), vision_config=VISION, **ids)
    return made, Glm4vProcessor(Glm4vImageProcessor(), words, Glm4vVideoProcessor())


def glm_4_1v(words: Any) -> Parts:
    from transformers import Glm4vConfig

    return _glm(words, Glm4vConfig)


def glm_4_5v(words: Any) -> Parts:
    from transformers import Glm4vMoeConfig

    return _glm(
        words,
        Glm4vMoeConfig,
        n_routed_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=64,
        use_qk_norm=False,
    )


def internvl(words: Any) -> Parts:
    from transformers import GotOcr2ImageProcessor, InternVLConfig, InternVLProcessor, InternVLVideoProcessor

    config = InternVLConfig(
        text_config=_text(words, model_type="qwen2"),
        vision_config=WIDTH | {"image_size": [448, 448], "patch_size": [14, 14]},
        image_token_id=words.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=256,
    )
    images = GotOcr2ImageProcessor(
        size={"height": 448, "width": 448}, crop_to_patches=False, min_patches=1, max_patches=12
    )
    return config, InternVLProcessor(images, words, InternVLVideoProcessor(), image_seq_length=256)


def llava_onevision(words: Any) -> Parts:
    from transformers import (
        LlavaOnevisionConfig,
        LlavaOnevisionImageProcessor,
        LlavaOnevisionProcessor,
        LlavaOnevisionVideoProcessor,
    )

    sides = range(384, 2305, 384)
    pinpoints = [[height, width] for height in sides for width in sides]
    vision = WIDTH | {"model_type": "siglip_vision_model", "image_size": 384, "patch_size": 14}
    config = LlavaOnevisionConfig(
        text_config=_text(words, model_type="qwen2"),
        vision_config=vision | {"vision_use_head": False},
        image_grid_pinpoints=pinpoints,
        image_token_index=words.convert_tokens_to_ids("<image>"),
        video_token_index=words.convert_tokens_to_ids("<video>"),
        vision_feature_select_strategy="full",
        vision_aspect_ratio="anyres_max_9",
    )
    processor = LlavaOnevisionProcessor(
        LlavaOnevisionImageProcessor(size={"height": 384, "width": 384}, image_grid_pinpoints=pinpoints),
        words,
        LlavaOnevisionVideoProcessor(),
        num_image_tokens=729,
        vision_feature_select_strategy="full",
    )
    return config, processor


def llava(words: Any) -> Parts:
    from transformers import CLIPImageProcessor, LlavaConfig, LlavaProcessor

    vision = {"model_type": "clip_vision_model", "image_size": 336, "patch_size": 14, "projection_dim": 32}
    config = LlavaConfig(
        text_config=_text(words, model_type="mistral"),
        vision_config=WIDTH | vision,
        image_token_index=words.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-2,
    )
    images = CLIPImageProcessor(size={"shortest_edge": 336}, crop_size={"height": 336, "width": 336})
    processor = LlavaProcessor(
        images, words, patch_size=14, vision_feature_select_strategy="default", num_additional_image_tokens=1
    )
    return config, processor


def llava_interleave(words: Any) -> Parts:
    from transformers import LlavaConfig, LlavaProcessor, SiglipImageProcessor

    vision = WIDTH | {"model_type": "siglip_vision_model", "image_size": 384, "patch_size": 14}
    config = LlavaConfig(
        text_config=_text(words, model_type="qwen2"),
        vision_config=vision | {"vision_use_head": False},
        image_token_index=words.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
    )
    images = SiglipImageProcessor(size={"height": 384, "width": 384})
    processor = LlavaProcessor(
        images, words, patch_size=14, vision_feature_select_strategy="full", num_additional_image_tokens=0
    )
    return config, processor


def pixtral(words: Any) -> Parts:
    from transformers import LlavaConfig

    config = LlavaConfig(
        text_config=_text(words, model_type="mistral"),
        vision_config=WIDTH | {"model_type": "pixtral", "image_size": 1024, "patch_size": 16, "head_dim": 64},
        image_token_index=words.convert_tokens_to_ids("[IMG]"),
        vision_feature_select_strategy="full",
        vision_feature_layer=-1,
    )
    return config, _pixtral(words, 1024, 16, 1)


def mistral_3(words: Any) -> Parts:
    from transformers import Mistral3Config

    config = Mistral3Config(
        text_config=_text(words, model_type="mistral"),
        vision_config=WIDTH | {"model_type": "pixtral", "image_size": 1540, "patch_size": 14, "head_dim": 64},
        image_token_index=words.convert_tokens_to_ids("[IMG]"),
        vision_feature_layer=-1,
        spatial_merge_size=2,
    )
    return config, _pixtral(words, 1540, 14, 2)


def _pixtral(words: Any, side: int, patch: int, merge: int) -> Any:
    from transformers import PixtralImageProcessor, PixtralProcessor

    images = PixtralImageProcessor(size={"longest_edge": side}, patch_size={"height": patch, "width": patch})
    return PixtralProcessor(images, words, patch_size=patch, spatial_merge_size=merge)


def qwen_2_vl(words: Any) -> Parts:
    from transformers import Qwen2VLConfig, Qwen2VLImageProcessor, Qwen2VLProcessor, Qwen2VLVideoProcessor

    rope = {"rope_type": "default", "mrope_section": [8, 12, 12]}
    vision = {"depth": 2, "embed_dim": 128, "hidden_size": 128, "num_heads": 2, "mlp_ratio": 2}
    config = Qwen2VLConfig(
        text_config=_text(words, rope_parameters=rope), vision_config=vision, **_qwen_ids(words)
    )
    images = Qwen2VLImageProcessor(size=PIXELS)
    return config, Qwen2VLProcessor(images, words, Qwen2VLVideoProcessor(size=PIXELS))


def qwen_2_5_vl(words: Any) -> Parts:
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    rope = {"rope_type": "default", "mrope_section": [8, 12, 12]}
    config = Qwen2_5_VLConfig(
        text_config=_text(words, rope_parameters=rope),
        vision_config=VISION | {"fullatt_block_indexes": [1]},
        **_qwen_ids(words),
    )
    images = Qwen2VLImageProcessor(size=PIXELS)
    return config, Qwen2_5_VLProcessor(images, words, Qwen2VLVideoProcessor(size=PIXELS))


def _qwen_3(words: Any, config: Any, deepstack: tuple[int, ...] = (0, 1), **more: Any) -> Parts:
    from transformers import Qwen2VLImageProcessor, Qwen3VLProcessor, Qwen3VLVideoProcessor

    more.setdefault(
        "rope_parameters",
        {"rope_type": "default", "mrope_section": [12, 10, 10], "mrope_interleaved": True},
    )
    images = Qwen2VLImageProcessor(
        patch_size=16,
        merge_size=2,
        size={"shortest_edge": 65536, "longest_edge": 16777216},
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )
    made = config(
        text_config=_text(words, **more),
        vision_config=VISION | {"patch_size": 16, "deepstack_visual_indexes": deepstack},
        **_qwen_ids(words),
    )
    return made, Qwen3VLProcessor(images, words, Qwen3VLVideoProcessor(size=VIDEO_PIXELS))


def qwen_3_vl(words: Any) -> Parts:
    from transformers import Qwen3VLConfig

    return _qwen_3(words, Qwen3VLConfig)


def qwen_3_vl_moe(words: Any) -> Parts:
    from transformers import Qwen3VLMoeConfig

    more = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "norm_topk_prob": True}
    return _qwen_3(words, Qwen3VLMoeConfig, **more)


def qwen_3_5(words: Any) -> Parts:
    from transformers import Qwen3_5Config

    rope = {
        "rope_type": "default",
        "mrope_section": [4, 2, 2],
        "mrope_interleaved": True,
        "partial_rotary_factor": 0.25,
    }
    types = ["linear_attention", "full_attention"]
    return _qwen_3(words, Qwen3_5Config, (), layer_types=types, rope_parameters=rope)


def phi_3_5(words: Any, folder: Path) -> None:
    config = _text(
        words,
        img_processor={"name": "clip_vision_model"},
        model_type="phi3_v",
        architectures=["Phi3VForCausalLM"],
    )
    config["auto_map"] = {"AutoConfig": "configuration_phi3_v.Phi3VConfig"}
    _with_code(words, folder, config, "phi_code", "Phi3V", "phi3_v")


def kimi_vl(words: Any, folder: Path) -> None:
    config = {
        "model_type": "kimi_vl",
        "architectures": ["KimiVLForConditionalGeneration"],
        "text_config": _text(words, qk_rope_head_dim=64, kv_lora_rank=64),
        "vision_config": WIDTH | {"patch_size": 14},
        "media_placeholder_token_id": words.convert_tokens_to_ids("<|media_pad|>"),
    }
    _with_code(words, folder, config, "kimi_code", "KimiVL", "kimi_vl")


def _with_code(words: Any, folder: Path, config: dict[str, Any], code: str, named: str, module: str) -> None:  # noqa: PLR0917
    folder.mkdir(exist_ok=True)
    for file in (Path(__file__).parent / code).glob("*.py"):
        shutil.copy(file, folder)
    words.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config))
    classes = {"AutoProcessor": f"{named}Processor", "AutoImageProcessor": f"{named}ImageProcessor"}
    processing = {
        "auto_map": {auto: f"processing_{module}.{one}" for auto, one in classes.items()},
        "processor_class": classes["AutoProcessor"],
        "image_processor_type": classes["AutoImageProcessor"],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(processing))


def _qwen_ids(words: Any) -> dict[str, int]:
    return _ids(
        words,
        image_token_id="<|image_pad|>",
        video_token_id="<|video_pad|>",
        vision_start_token_id="<|vision_start|>",
        vision_end_token_id="<|vision_end|>",
    )


WITH_CODE: Mapping[str, Callable[[Any, Path], None]] = {"phi_3_5": phi_3_5, "kimi_vl": kimi_vl}
"""Families whose processor is Python code of the model's folder; that code is a stand-in here."""

BUILDERS: Mapping[str, Callable[[Any], Parts]] = {
    made.__name__: made
    for made in (
        idefics3,
        gemma_3,
        gemma_4,
        glm_4_1v,
        glm_4_5v,
        internvl,
        llava_onevision,
        llava,
        pixtral,
        mistral_3,
        llava_interleave,
        qwen_2_vl,
        qwen_2_5_vl,
        qwen_3_vl,
        qwen_3_vl_moe,
        qwen_3_5,
    )
}
