"""Videos as vLLM's own processing takes them, family by family: no frame dropped, scaled or added.

Families that take videos need torchvision (docs/guides/gpus.md); without it, these tests are left out.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.model import VIDEO_ARCHITECTURES
from cardiolens.inference.engine.ask import Ask
from cardiolens.inference.models.chat import Chat
from cardiolens.storage.schemas import FRAME
from tests.families.build import build
from tests.families.families import FAMILIES
from tests.families.processing import of_engine
from tests.families.test_templates import QUESTION, SYSTEM

TAKERS = [name for name, family in FAMILIES.items() if family.architecture in VIDEO_ARCHITECTURES]
OTHERS = ("glm_4_1v", "internvl", "llava_onevision")
pytestmark = pytest.mark.filterwarnings("default")  # vLLM's own


@pytest.fixture(scope="module", params=TAKERS)
def taker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Chat]:
    folder = tmp_path_factory.mktemp("model")
    build(request.param, folder)
    return request.param, folder, Chat(folder, FAMILIES[request.param].model)


def frames_of(sizes: list[tuple[int, int]]) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(7)
    return {f"f{number}": draw.integers(0, 256, size, np.uint8) for number, size in enumerate(sizes)}


def ask_of(text: str, n_frames: int) -> Ask:
    keys = tuple(f"f{number}" for number in range(n_frames))
    return Ask("k", SYSTEM, f"{text}{QUESTION}", keys, "single", ("A", "B"), 8)


def two_videos(lengths: tuple[int, int]) -> str:
    first, second = lengths
    return (
        f"Frames 1 to {first}, as a video: cine\n{FRAME * first}\nFrame {first + 1}: late\n{FRAME}\n"
        f"Frames {first + 2} to {first + 1 + second}, as a video: cine\n{FRAME * second}\n"
    )


@pytest.mark.torchvision
@pytest.mark.parametrize("lengths", [(2, 3), (5, 16)])
def test_every_frame_of_every_video_reaches_the_encoder(
    taker: tuple[str, Path, Chat], lengths: tuple[int, int]
):
    name, folder, chat = taker
    options = FAMILIES[name].options
    text, n_frames = two_videos(lengths), sum(lengths) + 1
    sizes = [(448, 448)] * lengths[0] + [(224, 224)] + [(448, 384)] * lengths[1]
    ask, frames = ask_of(text, n_frames), frames_of(sizes)
    made = of_engine(folder, ask, frames, options)
    tokens = list(made["prompt_token_ids"])
    assert len(tokens) == chat.count(ask.system, ask.text, tuple(sizes))
    assert tokens.count(chat.video_token_id) == chat.video_placeholders(ask.text, tuple(sizes))
    assert len(made["mm_placeholders"]["video"]) == 2
    assert len(made["mm_placeholders"]["image"]) == 1
    for video, first, length in zip(made["mm_kwargs"]["video"], (0, lengths[0] + 1), lengths, strict=True):
        keys = [f"f{number}" for number in range(first, first + length)]
        one_by_one = ask_of(f"{FRAME}\n" * length, length)
        alone = of_engine(folder, one_by_one, renamed(frames, keys), options)
        assert int(video["video_grid_thw"].data[0]) == -(-length // 2)
        shown, singly = (
            in_time(video, "video"),
            [in_time(one, "image") for one in alone["mm_kwargs"]["image"]],
        )
        padded = [*singly, *singly[-1:]][: 2 * len(shown)] if length % 2 else singly
        for number, frame in enumerate(padded):
            patch, half = divmod(number, 2)
            assert np.abs(shown[patch][half] - frame[0][half]).max() < 1e-6, "the pixels of the frame"


def renamed(frames: dict[str, np.ndarray], keys: list[str]) -> dict[str, np.ndarray]:
    return {f"f{number}": frames[key] for number, key in enumerate(keys)}


def in_time(item: Any, kind: str) -> np.ndarray:
    """The pixels of a frame or video by patch in time, and by frame within it."""
    pixels = item["pixel_values_videos" if kind == "video" else "pixel_values"].data.float().numpy()
    grid = [int(number) for number in item[f"{kind}_grid_thw"].data]
    parts = pixels.reshape(grid[0], grid[1] * grid[2], 3, 2, -1)
    return parts.transpose(0, 3, 1, 2, 4)


@pytest.mark.torchvision
def test_a_processor_that_would_scale_a_video_is_refused_in_the_plan(
    taker: tuple[str, Path, Chat], tmp_path: Path
):
    name, _, _ = taker
    build(name, tmp_path)
    path = tmp_path / "processor_config.json"
    config = json.loads(path.read_text())
    config["video_processor"]["size"] = {"shortest_edge": 3136, "longest_edge": 65536}
    path.write_text(json.dumps(config))
    text = f"{FRAME * 4}\n{QUESTION}"
    with pytest.raises(InputError, match=r"of a video of 4 frames its processor makes 2 x .* in place of"):
        Chat(tmp_path, FAMILIES[name].model).count(SYSTEM, text, ((448, 448),) * 4)


@pytest.mark.torchvision
def test_a_processor_told_to_sample_frames_is_refused(taker: tuple[str, Path, Chat]):
    name, folder, _ = taker
    sampling = {"do_sample_frames": True, "fps": 1.0}
    model = FAMILIES[name].model.model_copy(update={"engine_options": {"mm_processor_kwargs": sampling}})
    with pytest.raises(InputError, match=r"of a video of 8 frames its processor makes 2 x \d+ x"):
        Chat(folder, model).count(SYSTEM, f"{FRAME * 8}\n{QUESTION}", ((448, 448),) * 8)


@pytest.mark.parametrize(
    "name", ["idefics3", *(pytest.param(name, marks=pytest.mark.torchvision) for name in OTHERS)]
)
def test_other_families_are_refused_by_their_architecture(name: str, tmp_path: Path):
    build(name, tmp_path)
    with pytest.raises(InputError, match=f"is of {FAMILIES[name].architecture}, and videos are sent to"):
        Chat(tmp_path, FAMILIES[name].model).prompt(SYSTEM, f"{FRAME * 2}\n{QUESTION}")
