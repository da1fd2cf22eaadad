"""The families of the catalogue: architecture, tokens of its tokenizer, template, traits of its prompts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cardiolens.inference.models import embedded
from tests.families import templates

_CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_QWEN = (*_CHATML, "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
_GLM = (
    "<|endoftext|>",
    "[gMASK]",
    "<sop>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|begin_of_image|>",
    "<|image|>",
    "<|end_of_image|>",
    "<|begin_of_video|>",
    "<|video|>",
    "<|end_of_video|>",
)
_MISTRAL = (
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[IMG]",
    "[IMG_BREAK]",
    "[IMG_END]",
)
_PHI = ("<s>", "<|endoftext|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>")


@dataclass(frozen=True)
class Family:
    """Stand-ins for what a family publishes, as far as a prompt depends on it."""

    architecture: str
    template: str
    special: tuple[str, ...]  # of the tokenizer
    placeholder: str  # in the rendered prompt, {number} for the number of the image
    named: Mapping[str, str]  # special tokens that the tokenizer names
    eos: str
    words: tuple[str, ...] = ()  # of its vocabulary, on which its processor relies
    bos: str | None = None
    adds_bos: bool = False  # the tokenizer does, with no template
    cut: bool = False  # white space at the ends of a text
    joined: bool = False  # placeholders stand within one text
    options: Mapping[str, bool] = field(default_factory=dict)  # of the template, as in conf/model


FAMILIES: Mapping[str, Family] = {
    "idefics3": Family(
        "Idefics3ForConditionalGeneration",
        embedded.CHAT_TEMPLATE,
        embedded.SPECIAL,
        "<image>",
        {},
        "<end_of_utterance>",
        bos="<bos>",
    ),
    "gemma_3": Family(
        "Gemma3ForConditionalGeneration",
        templates.GEMMA_3,
        (
            "<pad>",
            "<eos>",
            "<bos>",
            "<unk>",
            "<start_of_turn>",
            "<end_of_turn>",
            "<start_of_image>",
            "<image_soft_token>",
            "<end_of_image>",
        ),
        "<start_of_image>",
        {
            "image_token": "<image_soft_token>",
            "boi_token": "<start_of_image>",
            "eoi_token": "<end_of_image>",
        },
        "<eos>",
        words=("\n", "\n\n", "\n\n\n", "\n\n\n\n"),
        bos="<bos>",
        adds_bos=True,
        cut=True,
    ),
    "gemma_4": Family(
        "Gemma4ForConditionalGeneration",
        templates.GEMMA_4,
        (
            "<pad>",
            "<eos>",
            "<bos>",
            "<unk>",
            "<|turn>",
            "<turn|>",
            "<|think|>",
            "<|channel>",
            "<channel|>",
            "<|image|>",
            "<|image>",
            "<image|>",
            "<|audio|>",
            "<|audio>",
            "<audio|>",
            "<|video|>",
        ),
        "<|image|>",
        {
            "image_token": "<|image|>",
            "boi_token": "<|image>",
            "eoi_token": "<image|>",
            "audio_token": "<|audio|>",
            "boa_token": "<|audio>",
            "eoa_token": "<audio|>",
        },
        "<eos>",
        bos="<bos>",
        adds_bos=True,
        cut=True,
        options={"enable_thinking": False},
    ),
    "glm_4_1v": Family(
        "Glm4vForConditionalGeneration",
        templates.GLM_4_1V,
        _GLM,
        templates.GLM_IMAGE,
        {"image_token": "<|image|>", "video_token": "<|video|>"},
        "<|endoftext|>",
    ),
    "glm_4_5v": Family(
        "Glm4vMoeForConditionalGeneration",
        templates.GLM_4_5V,
        _GLM,
        templates.GLM_IMAGE,
        {"image_token": "<|image|>", "video_token": "<|video|>"},
        "<|endoftext|>",
        options={"enable_thinking": False},
    ),
    "internvl": Family(
        "InternVLForConditionalGeneration",
        templates.INTERNVL,
        (*_CHATML, "<img>", "</img>", "<IMG_CONTEXT>", "<video>"),
        "<IMG_CONTEXT>\n",
        {
            "start_image_token": "<img>",
            "end_image_token": "</img>",
            "context_image_token": "<IMG_CONTEXT>",
            "video_token": "<video>",
        },
        "<|im_end|>",
    ),
    "kimi_vl": Family(
        "KimiVLForConditionalGeneration",
        templates.KIMI,
        (
            "[BOS]",
            "[EOS]",
            "<|im_system|>",
            "<|im_user|>",
            "<|im_assistant|>",
            "<|im_middle|>",
            "<|im_end|>",
            "<|media_start|>",
            "<|media_content|>",
            "<|media_pad|>",
            "<|media_end|>",
        ),
        templates.MEDIA,
        {},
        "[EOS]",
        bos="[BOS]",
    ),
    "llava_onevision": Family(
        "LlavaOnevisionForConditionalGeneration",
        templates.IMAGES_FIRST,
        (*_CHATML, "<image>", "<video>"),
        "<image>",
        {"image_token": "<image>", "video_token": "<video>"},
        "<|im_end|>",
        joined=True,
    ),
    "minicpm_v": Family(
        "MiniCPMV",
        templates.MINICPM,
        (*_CHATML, "<unk>", "<image>", "</image>", "<slice>", "</slice>", "<image_id>", "</image_id>"),
        "(<image>./</image>)",
        {},
        "<|im_end|>",
        joined=True,
        options={"enable_thinking": False},
    ),
    "mistral_3": Family(
        "Mistral3ForConditionalGeneration",
        templates.MISTRAL_3,
        _MISTRAL,
        "[IMG]",
        {},
        "</s>",
        bos="<s>",
        adds_bos=True,
    ),
    "phi_3_5": Family(
        "Phi3VForCausalLM",
        templates.PHI_3_5,
        _PHI,
        "<|image_{number}|>",
        {},
        "<|end|>",
        bos="<s>",
        joined=True,
    ),
    "phi_4": Family(
        "Phi4MMForCausalLM",
        templates.PHI_4,
        (*_PHI, "<|endoftext10|>", "<|endoftext11|>"),
        "<|image_{number}|>",
        {},
        "<|end|>",
        joined=True,
    ),
    "llava": Family(
        "LlavaForConditionalGeneration",
        templates.LLAVA_MISTRAL,
        ("<unk>", "<s>", "</s>", "<image>"),
        "<image>",
        {"image_token": "<image>"},
        "</s>",
        bos="<s>",
        adds_bos=True,
        joined=True,
    ),
    "pixtral": Family(
        "LlavaForConditionalGeneration",
        templates.PIXTRAL,
        _MISTRAL,
        "[IMG]",
        {},
        "</s>",
        bos="<s>",
        adds_bos=True,
    ),
    "llava_interleave": Family(
        "LlavaForConditionalGeneration",
        templates.IMAGES_FIRST,
        (*_CHATML, "<image>"),
        "<image>",
        {"image_token": "<image>"},
        "<|im_end|>",
        joined=True,
    ),
    "qwen_2_vl": Family(
        "Qwen2VLForConditionalGeneration", templates.QWEN, _QWEN, templates.VISION, {}, "<|im_end|>"
    ),
    "qwen_2_5_vl": Family(
        "Qwen2_5_VLForConditionalGeneration", templates.QWEN, _QWEN, templates.VISION, {}, "<|im_end|>"
    ),
    "qwen_3_vl": Family(
        "Qwen3VLForConditionalGeneration", templates.QWEN, _QWEN, templates.VISION, {}, "<|im_end|>"
    ),
    "qwen_3_vl_moe": Family(
        "Qwen3VLMoeForConditionalGeneration", templates.QWEN, _QWEN, templates.VISION, {}, "<|im_end|>"
    ),
    "qwen_3_5": Family(
        "Qwen3_5ForConditionalGeneration",
        templates.QWEN_THINKING,
        _QWEN,
        templates.VISION,
        {},
        "<|im_end|>",
        cut=True,
        options={"enable_thinking": False},
    ),
}


def tokenizer(family: Family) -> Any:
    """A byte-level tokenizer, trained on a few sentences, with the special tokens of a family."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1024,
        special_tokens=list(family.special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(embedded._CORPUS, trainer)
    if family.adds_bos:
        bos = str(family.bos)
        core.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, core.token_to_id(bos))]
        )
    core.add_tokens(list(family.words))
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token=family.bos,
        eos_token=family.eos,
        pad_token=family.special[0],
        unk_token="<unk>" if "<unk>" in family.special else family.special[0],
        extra_special_tokens=dict(family.named),
        additional_special_tokens=[token for token in family.special if token not in family.named.values()],
        model_max_length=32768,
        chat_template=family.template,
    )
