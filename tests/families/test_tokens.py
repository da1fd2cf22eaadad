"""Tokens predicted for a prompt are those that vLLM's own processing makes of it, family by family.

With torchvision all families run (see docs/guides/gpus.md); without it, those that need none.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.model import ModelSpec
from cardiolens.inference.models import chat_template
from cardiolens.inference.models.chat import Chat
from cardiolens.storage.schemas import FRAME
from tests.families.build import build
from tests.families.families import FAMILIES
from tests.families.processing import PROCESSED, processed
from tests.families.test_templates import QUESTION, SYSTEM

pytestmark = pytest.mark.filterwarnings("default")  # vLLM's own

SIZES = ((448, 400), (112, 224), (96, 80))
OPTIONS: dict[str, dict[str, Any]] = {  # of the processor, each of which changes the tokens of a frame
    "idefics3": {"size": {"longest_edge": 128}, "do_image_splitting": True},
    "gemma_3": {
        "do_pan_and_scan": True,
        "pan_and_scan_min_crop_size": 32,
        "pan_and_scan_max_num_crops": 4,
        "pan_and_scan_min_ratio_to_activate": 1.1,
    },
    "gemma_4": {"max_soft_tokens": 70},
    "glm_4_1v": {"size": {"shortest_edge": 12544, "longest_edge": 50176}},
    "internvl": {"max_patches": 2},
    "mistral_3": {"size": {"longest_edge": 224}},
    "qwen_2_5_vl": {"min_pixels": 50176, "max_pixels": 100352},
    "qwen_3_vl": {"images_kwargs": {"max_pixels": 65536}},
}


@pytest.fixture(scope="module", params=PROCESSED)
def named_chat(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, Chat]:
    folder = tmp_path_factory.mktemp("model")
    build(request.param, folder)
    return request.param, folder, Chat(folder, FAMILIES[request.param].model)


@pytest.mark.full
@pytest.mark.parametrize("frames", [1, 3, 32])
def test_tokens_predicted_are_those_of_vllm(named_chat: tuple[str, Path, Chat], frames: int):
    name, folder, chat = named_chat
    sizes = SIZES[:frames] if frames <= len(SIZES) else ((112, 96),) * frames
    text = "".join(f"Frame {number}: cine\n{FRAME}\n" for number in range(1, frames + 1)) + QUESTION
    seen = processed(folder, chat.prompt(SYSTEM, text), sizes)
    assert len(seen.places) == frames
    assert seen.places == sorted(seen.places)
    assert len(seen.tokens) == chat.count(SYSTEM, text, sizes)
    words = chat._tokenizer.decode(seen.tokens)
    assert words.count(SYSTEM) == words.count(QUESTION.strip()) == 1
    first = chat._tokenizer.bos_token
    assert first is None or words.count(first) == ("bos_token" in FAMILIES[name].template), "not twice"


@pytest.mark.parametrize("family", [name for name in PROCESSED if name in OPTIONS])
def test_options_of_the_processor_change_both_alike(family: str, tmp_path: Path):
    build(family, tmp_path)
    text = "".join(f"Frame {number}: cine\n{FRAME}\n" for number in (1, 2, 3)) + QUESTION
    options = {"mm_processor_kwargs": {**OPTIONS[family], "device": "cuda"}}  # which a plan does not need
    model = FAMILIES[family].model
    plain = Chat(tmp_path, model).count(SYSTEM, text, SIZES)
    chat = Chat(tmp_path, model.model_copy(update={"engine_options": options}))
    seen = processed(tmp_path, chat.prompt(SYSTEM, text), SIZES, OPTIONS[family])
    assert len(seen.tokens) == chat.count(SYSTEM, text, SIZES) != plain


def test_options_that_are_no_mapping_are_refused(tmp_path: Path):
    model = ModelSpec(name="m", source="m", engine_options={"mm_processor_kwargs": 3})
    with pytest.raises(InputError, match=r"model m: engine_options.mm_processor_kwargs is 3; expected names"):
        Chat(tmp_path, model)


@pytest.mark.parametrize("module", ["kimi_vl", "minicpmv", "phi3v", "phi4mm"])
def test_placeholders_are_those_that_vllm_declares(module: str):
    models = import_module(f"vllm.model_executor.models.{module}")
    declared = {name: text for name, text in chat_template._BY_ARCHITECTURE.items() if hasattr(models, name)}
    assert declared
    for name, text in declared.items():
        for number in (1, 12):
            wanted = text.replace("{number}", str(number))
            assert getattr(models, name).get_placeholder_str("image", number) == wanted
