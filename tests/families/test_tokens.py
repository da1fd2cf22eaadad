"""Tokens predicted for a prompt are those that vLLM's own processing makes of it, family by family.

With torchvision all families run (see docs/models.md); without it, those that need none.
"""

from importlib import import_module
from pathlib import Path

import pytest

from cardiolens.models import placeholders
from cardiolens.models.chat import Chat
from cardiolens.tables import FRAME
from tests.families.build import build
from tests.families.families import FAMILIES
from tests.families.processing import PROCESSED, processed
from tests.families.test_templates import QUESTION, SYSTEM

pytestmark = pytest.mark.filterwarnings("default")  # vLLM's own

SIZES = ((448, 400), (112, 224), (96, 80))


@pytest.fixture(scope="module", params=PROCESSED)
def named_chat(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, Chat]:
    folder = tmp_path_factory.mktemp("model")
    build(request.param, folder)
    return request.param, folder, Chat(folder, FAMILIES[request.param].options, trust_remote_code=True)


@pytest.mark.parametrize("frames", [1, 3, 32])
def test_tokens_predicted_are_those_of_vllm(named_chat: tuple[str, Path, Chat], frames: int):
    name, folder, chat = named_chat
    sizes = SIZES[:frames] if frames <= len(SIZES) else ((112, 96),) * frames
    text = "".join(f"Frame {number}: cine\n{FRAME}\n" for number in range(1, frames + 1)) + QUESTION
    seen = processed(folder, chat.prompt(SYSTEM, text), sizes)
    assert len(seen.places) == frames
    assert seen.places == sorted(seen.places)
    assert len(seen.tokens) == chat.count(SYSTEM, text, sizes) == chat.count(SYSTEM, text, sizes, exact=False)
    words = chat._tokenizer.decode(seen.tokens)
    assert words.count(SYSTEM) == words.count(QUESTION.strip()) == 1
    first = chat._tokenizer.bos_token
    assert first is None or words.count(first) == ("bos_token" in FAMILIES[name].template), "not twice"


@pytest.mark.parametrize("module", ["kimi_vl", "minicpmv", "phi3v", "phi4mm"])
def test_placeholders_are_those_that_vllm_declares(module: str):
    models = import_module(f"vllm.model_executor.models.{module}")
    declared = {name: text for name, text in placeholders._BY_ARCHITECTURE.items() if hasattr(models, name)}
    assert declared
    for name, text in declared.items():
        for number in (1, 12):
            wanted = text.replace("{number}", str(number))
            assert getattr(models, name).get_placeholder_str("image", number) == wanted
