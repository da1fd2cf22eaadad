"""A stand-in for the processor of Kimi-VL, loaded as code of a model's folder.

It has the interface that Kimi-VL's own code has and vLLM relies on.
"""

from typing import Any

import torch
from transformers import BatchFeature, ProcessorMixin
from transformers.image_processing_utils import BaseImageProcessor

_UNIT = 28  # pixels of a token's side: two patches of 14


class KimiVLImageProcessor(BaseImageProcessor):
    """Counts the patches of an image; its pixels are left out."""

    patch_size = 14
    merge_kernel_size = (2, 2)
    in_token_limit = 4096


class KimiVLProcessor(ProcessorMixin):
    """Repeats each pad by the tokens of its image, padded to whole tokens."""

    attributes = ["image_processor", "tokenizer"]  # noqa: RUF012 - as the library declares it
    image_processor_class = "AutoImageProcessor"
    tokenizer_class = "AutoTokenizer"
    image_token = "<|media_pad|>"

    def __init__(self, image_processor: Any, tokenizer: Any) -> None:
        self.image_processor, self.tokenizer = image_processor, tokenizer
        self.chat_template = None

    def __call__(self, images: Any = None, text: Any = None, **options: Any) -> BatchFeature:
        options.pop("return_tensors", None)
        shapes = [getattr(image, "size", None) for image in images or []]
        shapes = [
            one if isinstance(one, tuple) else image.shape[1::-1]
            for one, image in zip(shapes, images or [], strict=True)
        ]
        tokens = [(-(-height // _UNIT), -(-width // _UNIT)) for width, height in shapes]
        first, *rest = (text if isinstance(text, str) else text[0]).split(self.image_token)
        whole = first + "".join(
            self.image_token * (high * wide) + piece for (high, wide), piece in zip(tokens, rest, strict=True)
        )
        grids = torch.tensor([[2 * high, 2 * wide] for high, wide in tokens]).reshape(-1, 2)
        return BatchFeature(
            {
                **self.tokenizer([whole], **options),
                "pixel_values": torch.zeros(int(grids.prod(-1).sum()), 3, 2, 2),
                "image_grid_hws": grids,
            }
        )
