"""The tiny model of the package: a real vision-language architecture with random weights, for two CPU cores.

Idefics3 with 0.8 million parameters, its own byte-level tokenizer and a short chat template. The answers are
meaningless; the model exercises every part of the pipeline with a real engine.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

IMAGE_SIDE = 64  # pixels; 8 x 8 patches, 16 image tokens
PATCH = 8  # pixels
CONTEXT = 8192
SEED = 2606
_WIDTH = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2}

SPECIAL = (
    "<pad>",
    "<bos>",
    "<eos>",
    "<image>",
    "<fake_token_around_image>",
    "<global-img>",
    "<end_of_utterance>",
)
_CORPUS = (
    "You are taking part in a research test of cardiac MRI reading. "
    "You will see frames from one patient's study. "
    "Answer from the frames only. This is not for patient care.",
    "Frame 12: cine, short axis, slice 2 of 10 (base to apex), phase 1 of 25",
    "Frame 3: late gadolinium enhancement, four-chamber view, layer 1 of 3, phase 14 of 25",
    "The 16 frames above are shown in this order. Question: How is left ventricular systolic function?",
    "Pick exactly one option. Options run from least to most severe. Pick the one that fits best.",
    "Pick every option that applies, at least one. If option A applies, pick only A.",
    "A. Normal size B. Mildly to moderately enlarged C. Markedly dilated D. Severely reduced",
    "Finish with one line: ANSWER: <letter or letters separated by commas>",
    "First work through these points, one short line each, saying which frames you used.",
)
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['role'] | capitalize }}: "
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<end_of_utterance>\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)


def build(folder: Path) -> None:
    """Write the files of the model; equal library versions write equal bytes."""
    import torch
    from transformers import Idefics3ForConditionalGeneration

    tokenizer = finished(trained(SPECIAL))
    torch.manual_seed(SEED)
    model = Idefics3ForConditionalGeneration(config(tokenizer)).to(torch.bfloat16)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    processor(tokenizer).save_pretrained(folder)


def trained(special_tokens: Sequence[str]) -> Any:
    """Train a byte-level tokenizer with these special tokens on a few sentences."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1024,
        special_tokens=list(special_tokens),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(_CORPUS, trainer)
    return core


def finished(core: Any) -> Any:
    """Wrap a trained tokenizer with the roles of the special tokens above and the chat template."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<bos>",
        eos_token="<end_of_utterance>",
        pad_token="<pad>",
        additional_special_tokens=list(SPECIAL[3:]),
        model_max_length=CONTEXT,
        chat_template=CHAT_TEMPLATE,
    )


def config(
    tokenizer: Any,
    vision: Mapping[str, Any] = _WIDTH,
    text: Mapping[str, Any] = _WIDTH,
    joined: int = 2,
    **options: Any,
) -> Any:
    """Return an Idefics3 configuration: widths of its two parts, patches per side of an image token."""
    from transformers import Idefics3Config

    return Idefics3Config(
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=joined,
        pad_token_id=tokenizer.pad_token_id,
        vision_config={**vision, "image_size": IMAGE_SIDE, "patch_size": PATCH},
        text_config={
            **text,
            "model_type": "llama",
            "num_key_value_heads": text["num_attention_heads"],
            "vocab_size": len(tokenizer),
            "max_position_embeddings": CONTEXT,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
            "tie_word_embeddings": False,
        },
        **options,
    )


def processor(tokenizer: Any, image_tokens: int = 16) -> Any:
    """Build the processor of a tokenizer, for frames of 64 pixels and `image_tokens` tokens each."""
    from transformers import Idefics3Processor
    from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

    images = Idefics3ImageProcessorPil(
        size={"longest_edge": IMAGE_SIDE},
        max_image_size={"longest_edge": IMAGE_SIDE},
        do_image_splitting=False,
    )
    return Idefics3Processor(images, tokenizer, image_seq_len=image_tokens, chat_template=CHAT_TEMPLATE)
