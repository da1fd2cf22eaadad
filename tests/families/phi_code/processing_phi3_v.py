"""A stand-in for the processor of Phi-3.5-vision, loaded as code of a model's folder.

It has the interface that Phi-3.5's own code has and vLLM relies on: one string, numbered images, no options.
"""

import math
import re
from typing import Any

import torch
from transformers import BatchFeature, ProcessorMixin
from transformers.image_processing_utils import BaseImageProcessor

_CROP = 336  # pixels
_CROPS = 4  # at most, as published for several frames


class Phi3VImageProcessor(BaseImageProcessor):
    """Counts the crops of an image; its pixels are left out."""

    def num_tokens(self, width: int, height: int) -> int:
        ratio = max(width, height) / min(width, height)
        long = max(one for one in range(1, _CROPS + 1) if one * math.ceil(one / ratio) <= _CROPS)
        short = math.ceil(round(long * _CROP / ratio) / _CROP)
        across, down = (long, short) if width >= height else (short, long)
        return (across * down + 1) * 144 + 1 + (down + 1) * 12


class Phi3VProcessor(ProcessorMixin):
    """Replaces each numbered tag by so many negative tokens."""

    attributes = ["image_processor", "tokenizer"]  # noqa: RUF012 - as the library declares it
    image_processor_class = "AutoImageProcessor"
    tokenizer_class = "AutoTokenizer"

    def __init__(self, image_processor: Any, tokenizer: Any) -> None:
        self.image_processor, self.tokenizer = image_processor, tokenizer
        self.chat_template = None
        self.img_tokens = [f"<|image_{number + 1}|>" for number in range(100)]

    def __call__(self, text: str, images: Any = None, return_tensors: str | None = None) -> BatchFeature:
        images = [image.convert("RGB") for image in images or []]
        counts = [self.calc_num_image_tokens_from_image_size(*image.size) for image in images]
        ids: list[int] = []
        for piece in re.split(r"(<\|image_\d+\|>)", text):
            tag = re.fullmatch(r"<\|image_(\d+)\|>", piece)
            ids += [-int(tag[1])] * counts[int(tag[1]) - 1] if tag else self.tokenizer(piece).input_ids
        sizes = torch.tensor([image.size[::-1] for image in images]).reshape(-1, 2)
        pixels = torch.zeros(len(images), 1, 3, 2, 2)
        return BatchFeature({"input_ids": torch.tensor([ids]), "pixel_values": pixels, "image_sizes": sizes})

    def calc_num_image_tokens_from_image_size(self, width: int, height: int) -> int:
        return self.image_processor.num_tokens(width, height)
