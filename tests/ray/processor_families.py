"""Tiny models of several processor families, and the tokens real vLLM counts for a prompt to one of them.

python -m tests.ray.processor_families aria FOLDER PROMPT HEIGHTxWIDTH...   prints the engine's count
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cardiolens.inference.models import embedded

WIDTH = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2}


def idefics3_splitting(folder: Path) -> None:
    """Frames are cut in tiles: their tokens depend on their shape."""
    from transformers import Idefics3ForConditionalGeneration, Idefics3Processor
    from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

    tokenizer = embedded._tokenizer()
    Idefics3ForConditionalGeneration(embedded._config(tokenizer)).save_pretrained(folder)
    images = Idefics3ImageProcessorPil(
        size={"longest_edge": 128}, max_image_size={"longest_edge": 64}, do_image_splitting=True
    )
    processor = Idefics3Processor(images, tokenizer, image_seq_len=16, chat_template=embedded.CHAT_TEMPLATE)
    processor.save_pretrained(folder)


def llava(folder: Path) -> None:
    """A grid of patches of one size."""
    from transformers import LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = embedded._tokenizer()
    vision = {"model_type": "clip_vision_model", "image_size": 64, "patch_size": 8, "projection_dim": 32}
    config = LlavaConfig(
        vision_config=WIDTH | vision,
        text_config=_text(tokenizer) | {"model_type": "llama", "tie_word_embeddings": False},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
    )
    LlavaForConditionalGeneration(config).save_pretrained(folder)
    processor = LlavaProcessor(
        CLIPImageProcessorPil(size={"shortest_edge": 64}, crop_size={"height": 64, "width": 64}),
        tokenizer,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=embedded.CHAT_TEMPLATE,
    )
    processor.save_pretrained(folder)


def aria(folder: Path) -> None:
    """So many queries a frame, by the size it is scaled to."""
    from transformers import AriaConfig, AriaForConditionalGeneration, AriaProcessor, PreTrainedTokenizerFast
    from transformers.models.aria.image_processing_pil_aria import AriaImageProcessorPil

    mark = "<|img|>"
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=embedded._tokenizer().backend_tokenizer,
        bos_token="<bos>",
        eos_token="<end_of_utterance>",
        pad_token="<pad>",
        unk_token="<pad>",
        extra_special_tokens={"image_token": mark},
    )
    experts = {"model_type": "aria_text", "moe_num_experts": 2, "moe_topk": 1, "moe_num_shared_experts": 1}
    config = AriaConfig(
        vision_config=WIDTH | {"model_type": "idefics3_vision", "image_size": 980, "patch_size": 70},
        text_config=_text(tokenizer) | experts,
        image_token_index=tokenizer.convert_tokens_to_ids(mark),
        projector_patch_to_query_dict={49: 16, 196: 32},
    )
    AriaForConditionalGeneration(config).save_pretrained(folder)
    processor = AriaProcessor(
        AriaImageProcessorPil(),
        tokenizer,
        chat_template=embedded.CHAT_TEMPLATE.replace("<image>", mark),
        size_conversion={490: 16, 980: 32},
    )
    processor.save_pretrained(folder)


FAMILIES: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "idefics3_splitting": (idefics3_splitting, "auto"),
    "aria": (aria, "auto"),
    "llava": (llava, "transformers"),  # vLLM's own needs torchvision, which has no build for CPU on PyPI
}


def _text(tokenizer: Any) -> dict[str, Any]:
    return WIDTH | {
        "num_key_value_heads": 2,
        "vocab_size": len(tokenizer),
        "max_position_embeddings": embedded.CONTEXT,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def counted_by_engine(family: str, folder: Path, prompt: str, sizes: list[tuple[int, int]]) -> int:
    """Prompt tokens that vLLM itself made of a prompt and frames of these (height, width)."""
    from PIL import Image
    from vllm import LLM, SamplingParams

    engine = LLM(
        str(folder),
        max_model_len=4096,
        max_num_seqs=2,
        dtype="bfloat16",
        enforce_eager=True,
        kv_cache_memory_bytes=1 << 28,
        limit_mm_per_prompt={"image": len(sizes)},
        model_impl=FAMILIES[family][1],
    )
    images = [Image.new("RGB", (width, height), "gray") for height, width in sizes]
    asked = {"prompt": prompt, "multi_modal_data": {"image": images}}
    (answer,) = engine.generate(asked, SamplingParams(max_tokens=1, temperature=0), use_tqdm=False)
    return len(answer.prompt_token_ids)


if __name__ == "__main__":
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    name, where, words, *shapes = sys.argv[1:]
    pairs = [(int(height), int(width)) for height, width in (shape.split("x") for shape in shapes)]
    print(counted_by_engine(name, Path(where), words, pairs))
