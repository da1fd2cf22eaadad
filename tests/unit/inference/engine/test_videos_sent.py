"""Videos on their way to vLLM: frames of a place together, and no answer if any of them was lost."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine.ask import Ask, ErrorKind, Reply, RequestError
from cardiolens.inference.engine.vllm_engine import VllmEngine
from cardiolens.inference.models.chat import Grid, check_frames_kept, check_takes_video
from cardiolens.inference.models.identity import Identity
from cardiolens.inference.placement.placement import Deployment
from cardiolens.storage.schemas import FRAME

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when vLLM imports it

VIDEO_TOKEN = 7
TEXT = f"Frame 1: late\n{FRAME}\nFrames 2 to 4, as a video: cine\n{FRAME * 3}\nFrame 5: late\n{FRAME}\n?"
KEYS = ("a", "b", "c", "d", "a")


def pixels(key: str) -> np.ndarray:
    return np.full((2, 3), ord(key), np.uint8)


class Filming(VllmEngine):
    """The engine with a stand-in for vLLM behind it, which makes so many tokens of videos."""

    def __init__(self, tmp_path: Path, n_tokens: int = 0) -> None:
        model = ModelSpec(name="m", source="hub/m")
        deployment = Deployment("m", 1, 1, ((),), 0.9, "", 0.0, "processor")
        super().__init__(model, Identity("m-0", tmp_path, {}), 8, deployment, shows_videos=True)
        self._engine: Any = SimpleNamespace(generate=self.generate, errored=False)
        self.n_tokens = n_tokens
        self.__dict__["_chat"] = SimpleNamespace(
            prompt=lambda system, text: text,
            video_token_id=VIDEO_TOKEN,
            video_placeholders=lambda text, sizes: sum(height * width for height, width in sizes[1:4]),
        )

    async def generate(self, prompt: Any, *_: object, **__: object) -> AsyncIterator[Any]:
        self.prompt = prompt
        said = SimpleNamespace(text="A", token_ids=[1], logprobs=None, finish_reason="stop")
        ids = [1] * 5 + [VIDEO_TOKEN] * self.n_tokens
        yield SimpleNamespace(outputs=[said], prompt_token_ids=ids, num_cached_tokens=0)

    def replied(self, text: str = TEXT, keys: tuple[str, ...] = KEYS) -> Reply:
        return asyncio.run(self.answer(Ask("k", "", text, keys, "single", ("A", "B"), 8), pixels))


def test_frames_side_by_side_are_sent_as_one_video_with_none_to_sample(tmp_path: Path) -> None:
    engine = Filming(tmp_path, n_tokens=18)
    assert engine.replied().text == "A"
    shown, ids = engine.prompt["multi_modal_data"], engine.prompt["multi_modal_uuids"]
    assert [int(np.asarray(image)[0, 0, 0]) for image in shown["image"]] == [ord("a"), ord("a")]
    ((video, told),) = shown["video"]
    assert (video.shape, video.dtype) == ((3, 2, 3, 3), np.uint8)
    assert [set(frame.ravel().tolist()) for frame in video] == [{ord(key)} for key in "bcd"]
    assert (told["do_sample_frames"], told["total_num_frames"], told["frames_indices"]) == (
        False,
        3,
        [0, 1, 2],
    )
    assert ids["image"] == ["a", "a"]
    assert len(ids["video"]) == 1
    engine.replied(TEXT, ("a", "b", "d", "c", "a"))
    assert engine.prompt["multi_modal_uuids"]["video"] != ids["video"], "another order is another video"


def test_without_a_video_what_is_sent_is_what_it_was(tmp_path: Path) -> None:
    engine = Filming(tmp_path)
    engine.replied(f"{FRAME}\n{FRAME}\n?", ("a", "b"))
    assert engine.prompt["multi_modal_data"].keys() == engine.prompt["multi_modal_uuids"].keys() == {"image"}
    engine.replied("?", ())
    assert engine.prompt.keys() == {"prompt"}


@pytest.mark.parametrize("n_tokens", [0, 12, 17, 24])
def test_a_video_of_other_tokens_than_its_frames_has_no_answer(tmp_path: Path, n_tokens: int) -> None:
    with pytest.raises(
        RequestError, match=f"made {n_tokens} tokens of its videos, and all frames are 18"
    ) as failed:
        Filming(tmp_path, n_tokens).replied()
    assert failed.value.kind == ErrorKind.REJECTED


@pytest.mark.parametrize(
    ("video", "n_frames"),
    [(Grid(2, 8, 8), 3), (Grid(2, 8, 8), 4), (Grid(1, 8, 8), 2), (Grid(8, 8, 8), 16)],
)
def test_pairs_of_frames_are_one_patch_in_time(video: Grid, n_frames: int) -> None:
    check_frames_kept(Path("m"), video, Grid(1, 8, 8), n_frames, 2)


@pytest.mark.parametrize(
    ("video", "n_frames"), [(Grid(2, 8, 8), 5), (Grid(3, 8, 8), 4), (Grid(2, 8, 6), 4), (Grid(2, 16, 16), 4)]
)
def test_frames_dropped_added_or_scaled_are_refused(video: Grid, n_frames: int) -> None:
    with pytest.raises(InputError, match=r"in place of \d x 8 x 8, so that a model would see other pixels"):
        check_frames_kept(Path("m"), video, Grid(1, 8, 8), n_frames, 2)


def test_an_architecture_that_nobody_tried_is_refused() -> None:
    check_takes_video(Path("m"), ["Qwen2_5_VLForConditionalGeneration"])
    with pytest.raises(InputError, match="m: is of InternVLChatModel, and videos are sent to Qwen2VLFor"):
        check_takes_video(Path("m"), ["InternVLChatModel"])
    with pytest.raises(InputError, match="is of no architecture"):
        check_takes_video(Path("m"), [])
