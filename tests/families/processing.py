"""vLLM's own processing of a prompt and frames, without an engine and without weights."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from tests.families.build import BUILDERS, WITH_CODE

# vLLM's classes of the other families import torchvision, which has no build for CPU on package indexes.
PROCESSED = (*(BUILDERS if find_spec("torchvision") else ("idefics3",)), *WITH_CODE)


class Processed(NamedTuple):
    """A prompt as the engine sees it."""

    tokens: list[int]
    places: list[tuple[int, int]]  # first token and number of tokens of each frame


def processed(
    folder: Path,
    prompt: str,
    sizes: tuple[tuple[int, int], ...],
    options: Mapping[str, Any] | None = None,
) -> Processed:
    """What vLLM makes of a prompt string and frames of these (height, width), with processor options."""
    from vllm.config import ModelConfig
    from vllm.model_executor.models import registry
    from vllm.multimodal import MULTIMODAL_REGISTRY

    registry._run_in_subprocess = lambda made: made()  # a process for each class would take a minute
    model = ModelConfig(
        str(folder),
        limit_mm_per_prompt={"image": len(sizes)},
        dtype="bfloat16",
        trust_remote_code=True,
        mm_processor_kwargs=None if options is None else dict(options),
    )
    processor = MULTIMODAL_REGISTRY.create_processor(model)
    frames = [
        Image.new("RGB", (width, height), (number, 0, 0)) for number, (height, width) in enumerate(sizes)
    ]
    done = processor(prompt, mm_items=processor.info.parse_mm_data({"image": frames}))
    ranges = done["mm_placeholders"]["image"]
    return Processed(list(done["prompt_token_ids"]), [(one.offset, one.length) for one in ranges])
