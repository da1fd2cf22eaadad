"""vLLM's own processing of a prompt and frames, without an engine and without weights."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine.ask import Ask
from cardiolens.inference.engine.vllm_engine import VllmEngine
from cardiolens.inference.models.identity import Identity
from cardiolens.inference.placement.placement import Deployment
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
    frames = [
        Image.new("RGB", (width, height), (number, 0, 0)) for number, (height, width) in enumerate(sizes)
    ]
    done = _done(folder, prompt, {"image": frames}, {"image": len(sizes)}, options)
    ranges = done["mm_placeholders"]["image"]
    return Processed(list(done["prompt_token_ids"]), [(one.offset, one.length) for one in ranges])


def of_engine(
    folder: Path, ask: Ask, frames: Mapping[str, np.ndarray], template_options: Mapping[str, bool]
) -> Any:
    """What vLLM makes of what our engine sends for a request, with the images and videos of its prompt."""
    deployment = Deployment("m", 1, 1, ((),), 0.9, "", 0.0, "processor")
    model = ModelSpec(name="m", source="hub/m", template_options=template_options)
    engine = VllmEngine(
        model, Identity("m-0", folder, {}), len(ask.frame_keys), deployment, shows_videos=True
    )
    prompt = engine._prompt(ask, lambda key: frames[key])  # by its own code
    limits = engine._engine_options()["limit_mm_per_prompt"]
    return _done(folder, prompt["prompt"], prompt["multi_modal_data"], limits)


def _done(
    folder: Path,
    prompt: str,
    shown: Mapping[str, Any],
    limits: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
) -> Any:
    from vllm.config import ModelConfig
    from vllm.model_executor.models import registry
    from vllm.multimodal import MULTIMODAL_REGISTRY

    registry._run_in_subprocess = lambda made: made()  # a process for each class would take a minute
    model = ModelConfig(
        str(folder),
        limit_mm_per_prompt=dict(limits),
        dtype="bfloat16",
        trust_remote_code=True,
        mm_processor_kwargs=None if options is None else dict(options),
    )
    processor = MULTIMODAL_REGISTRY.create_processor(model)
    return processor(prompt, mm_items=processor.info.parse_mm_data(dict(shown)))
