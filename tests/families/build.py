"""Folders of tiny models: published settings of the processor, a configuration of few parameters.

Settings are those of the transformers version at hand where it holds the published ones as defaults; the
others are written here.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tests.families.families import FAMILIES, tokenizer
from tests.support.tiny_model import tiny

CONTEXT = 32768
WIDTH = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2}

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
    return tiny.config(words), tiny.processor(words)


def _made(made: Mapping[str, Any], words: Any) -> Parts:
    """As `families.yaml` says: classes of transformers, each with its settings."""
    import transformers

    config = getattr(transformers, made["config"])(
        text_config=_text(words, **made.get("text", {})),
        vision_config=dict(made["vision"]),
        **_ids(words, **made["ids"]),
        **made.get("more", {}),
    )

    def one(part: str, *within: Any) -> Any:
        settings = dict(made[part])
        return getattr(transformers, settings.pop("class"))(*within, **settings)

    videos = [one("videos")] if "videos" in made else []
    return config, one("processor", one("images"), words, *videos)


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


WITH_CODE: Mapping[str, Callable[[Any, Path], None]] = {"phi_3_5": phi_3_5, "kimi_vl": kimi_vl}
"""Families whose processor is Python code of the model's folder; that code is a stand-in here."""

BUILDERS: Mapping[str, Callable[[Any], Parts]] = {
    **{name: partial(_made, family.made) for name, family in FAMILIES.items() if family.made},
    **{"idefics3": idefics3, "gemma_4": gemma_4},
}
