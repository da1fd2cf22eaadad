"""What vLLM and the processors of models raise for one request: a failed request, and the engine goes on."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine import startup
from cardiolens.inference.engine.ask import (
    Ask,
    EngineDeadError,
    ErrorKind,
    FrameWork,
    Pictures,
    Reply,
    RequestError,
)
from cardiolens.inference.engine.supervisor import Supervisor
from cardiolens.inference.engine.vllm_engine import VllmEngine, rgb_frames
from cardiolens.inference.models.chat import Grid, check_frames_kept, check_takes_video
from cardiolens.inference.models.identity import Identity
from cardiolens.inference.placement.placement import Deployment
from cardiolens.storage.schemas import FRAME

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when vLLM imports it

VIDEO_TOKEN = 7
DEPLOYMENT = Deployment("m", 1, 1, ((),), 0.9, "", 0.0, "processor")


def refused(name: str, *said: str) -> Callable[[], Exception]:
    """A refusal of vLLM by the name of its class; vLLM is imported only when the test runs."""
    return lambda: getattr(import_module("vllm.exceptions"), name)(*said)


def wrapped(cause: Exception | None) -> Callable[[], Exception]:
    """What vLLM makes of any error that one request meets on its way."""

    def error() -> Exception:
        outer: Exception = import_module("vllm.v1.engine.exceptions").EngineGenerateError()
        outer.__cause__ = cause
        return outer

    return error


def dead() -> Exception:
    return import_module("vllm.v1.engine.exceptions").EngineDeadError()


class Generating:
    """In the place of AsyncLLM: raises what is to be raised for requests named "bad", answers the others."""

    def __init__(
        self, error: Exception | None = None, *, dead: bool = False, finish: str = "stop", n_tokens: int = 0
    ) -> None:
        self.error, self.errored, self.finish = error, dead, finish
        self.n_tokens = n_tokens  # of videos
        self.asked: list[str] = []
        self.prompt: Any = None

    async def generate(self, prompt: object, sampling: object, request_id: str, **_: object) -> AsyncIterator:
        self.asked.append(request_id)
        self.prompt = prompt
        if request_id.startswith(("bad", "warm")) and self.error is not None:
            raise self.error
        said = SimpleNamespace(text="A", token_ids=[1], logprobs=None, finish_reason="stop")
        said.finish_reason = self.finish if request_id.startswith("bad") else "stop"
        ids = [1] * 5 + [VIDEO_TOKEN] * self.n_tokens
        yield SimpleNamespace(outputs=[said], prompt_token_ids=ids, num_cached_tokens=0)

    def shutdown(self) -> None:
        pass


class Started(VllmEngine):
    """The engine with a stand-in for vLLM behind it, and for the chat template before it."""

    def __init__(
        self, tmp_path: Path, behind: Generating, template: Exception | None = None, videos: bool = False
    ) -> None:
        model, identity = ModelSpec(name="m", source="hub/m"), Identity("m-0", tmp_path, {})
        super().__init__(model, identity, 8, DEPLOYMENT, shows_videos=videos)
        self.behind, self.template, self.starts = behind, template, 0

    async def start(self) -> None:
        self.starts += 1
        self._engine = self.behind  # type: ignore[assignment]

    def _prompt(self, ask, pictures):
        if self.template is not None and ask.request_key == "bad":
            raise self.template
        return {"prompt": ask.text}


class Warmed(Started):
    """An engine that counts the frame of its warm-up, as vLLM's statistics do."""

    def __init__(self, tmp_path: Path, behind: Generating) -> None:
        super().__init__(tmp_path, behind)
        self._engine = behind  # type: ignore[assignment]

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        assert pictures(ask.frame_keys[0]).max() == 0
        self.count_frames(processed=1, encoded=1)
        return await super().answer(ask, pictures)


def ask(name: str) -> Ask:
    return Ask(name, "", "?", (), "single", ("A", "B"), 8)


def answers(engine: Started) -> list[Reply | BaseException]:
    async def all_of() -> list[Reply | BaseException]:
        supervisor = Supervisor(engine, max_restarts=1)
        asks = [ask("good-1"), ask("bad"), ask("good-2")]
        return await asyncio.gather(
            *(supervisor.answer(one, lambda key: np.zeros((1, 1), np.uint8)) for one in asks),
            return_exceptions=True,
        )

    return asyncio.run(all_of())


def failure_beside_answers(engine: Started) -> RequestError:
    """What becomes of the request "bad", when the two beside it are answered."""
    first, bad, last = answers(engine)
    assert isinstance(first, Reply)
    assert isinstance(last, Reply)
    assert isinstance(bad, RequestError)
    return bad


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (refused("VLLMValidationError", "too long"), ErrorKind.REJECTED, "too long"),
        (lambda: ValueError("at most 8 images"), ErrorKind.REJECTED, "ValueError: at most 8 images"),
        (wrapped(RuntimeError("9 places\n8 images")), ErrorKind.FAILED, "RuntimeError: 9 places 8"),
        (wrapped(None), ErrorKind.FAILED, "EngineGenerateError"),
    ],
)
def test_an_error_of_one_request_is_its_own(error, kind, said, tmp_path: Path):
    engine = Started(tmp_path, Generating(error()))
    bad = failure_beside_answers(engine)
    assert bad.kind == kind
    assert said in str(bad)
    assert engine.starts == 1


@pytest.mark.parametrize("error", [InputError("cannot be rendered"), KeyError("role")])
def test_a_template_that_fails_on_one_request_is_that_requests_failure(error, tmp_path: Path):
    failure_beside_answers(Started(tmp_path, Generating(), template=error))


@pytest.mark.parametrize("finish", ["abort", "error"])
def test_a_request_that_vllm_gave_up_has_no_answer(finish, tmp_path: Path):
    bad = failure_beside_answers(Started(tmp_path, Generating(finish=finish)))
    assert bad.kind == ErrorKind.NO_ANSWER


@pytest.mark.parametrize(("error", "errored"), [(dead, False), (wrapped(RuntimeError("pipe")), True)])
def test_a_dead_engine_is_told_apart(error, errored, tmp_path: Path):
    engine = Started(tmp_path, Generating(error(), dead=errored))

    async def one() -> None:
        await engine.start()
        await engine.answer(ask("bad"), lambda key: np.zeros((1, 1), np.uint8))

    with pytest.raises(EngineDeadError, match=r"died unexpectedly.*--mem in cluster\.sbatch"):
        asyncio.run(one())


def test_the_cause_of_a_death_is_read_from_what_the_engine_wrote(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(startup, "root_cause", lambda since: "torch.OutOfMemoryError: out of memory")
    _, bad, _ = answers(Started(tmp_path, Generating(dead())))
    assert isinstance(bad, RequestError)
    assert "lower max_num_seqs" in str(bad)


@pytest.mark.parametrize("error", [None, ValueError("a black frame is no heart")])
def test_a_warm_up_is_counted_nowhere_and_may_be_refused(error, tmp_path: Path):
    engine = Warmed(tmp_path, Generating(error))
    asyncio.run(engine._warm_up())
    assert engine.behind.asked == ["warm-0"]
    assert engine.frames() == FrameWork()


def test_an_engine_that_dies_of_its_warm_up_did_not_start(tmp_path: Path):
    engine = Warmed(tmp_path, Generating(dead(), dead=True))
    with pytest.raises(EngineDeadError):
        asyncio.run(engine._warm_up())


def test_the_event_loop_runs_while_a_model_loads(tmp_path: Path, monkeypatch) -> None:
    """Timers that write rows, and the listener for a stop, are in the loop of the replica."""
    engine = Started(tmp_path, Generating())
    ran = threading.Event()

    def load(self: VllmEngine) -> Any:
        assert ran.wait(60), "the loop stands still"
        return engine.behind

    monkeypatch.setattr(VllmEngine, "_loaded", load)

    async def start() -> None:
        asyncio.get_running_loop().call_later(0.05, ran.set)
        await VllmEngine.start(engine)

    asyncio.run(start())


def test_frames_in_rgb_are_bounded_by_their_bytes() -> None:
    converted: list[str] = []

    def pictures(key: str) -> np.ndarray:
        converted.append(key)
        return np.full((4, 4), int(key), np.uint8)

    frames = rgb_frames(most_bytes=2 * 3 * 4 * 4)  # two of these
    for key in ("1", "2", "1", "3", "1", "2"):
        assert frames.of(key, pictures).getpixel((0, 0)) == (int(key),) * 3
        assert sum(3 * image.width * image.height for image in frames._kept.values()) <= 2 * 3 * 4 * 4
    assert converted == ["1", "2", "3", "2"]


TEXT = f"Frame 1: late\n{FRAME}\nFrames 2 to 4, as a video: cine\n{FRAME * 3}\nFrame 5: late\n{FRAME}\n?"
KEYS = ("a", "b", "c", "d", "a")


def pixels(key: str) -> np.ndarray:
    return np.full((2, 3), ord(key), np.uint8)


class Filming(Started):
    """The engine that asks with videos; what is behind it makes so many tokens of them."""

    _prompt = VllmEngine._prompt

    def __init__(self, tmp_path: Path, n_tokens: int = 0) -> None:
        super().__init__(tmp_path, Generating(n_tokens=n_tokens), videos=True)
        self._engine: Any = self.behind
        self.__dict__["_chat"] = SimpleNamespace(
            prompt=lambda system, text: text,
            video_token_id=VIDEO_TOKEN,
            video_placeholders=lambda text, sizes: sum(height * width for height, width in sizes[1:4]),
        )

    def replied(self, text: str = TEXT, keys: tuple[str, ...] = KEYS) -> Reply:
        return asyncio.run(self.answer(Ask("k", "", text, keys, "single", ("A", "B"), 8), pixels))


def test_frames_side_by_side_are_sent_as_one_video_with_none_to_sample(tmp_path: Path) -> None:
    engine = Filming(tmp_path, n_tokens=18)
    assert engine.replied().text == "A"
    shown, ids = engine.behind.prompt["multi_modal_data"], engine.behind.prompt["multi_modal_uuids"]
    assert [int(np.asarray(image)[0, 0, 0]) for image in shown["image"]] == [ord("a"), ord("a")]
    ((video, told),) = shown["video"]
    assert (video.shape, video.dtype) == ((3, 2, 3, 3), np.uint8)
    assert [set(frame.ravel().tolist()) for frame in video] == [{ord(key)} for key in "bcd"]
    assert (told["do_sample_frames"], told["total_num_frames"]) == (False, 3)
    assert told["frames_indices"] == [0, 1, 2]
    assert ids["image"] == ["a", "a"]
    assert len(ids["video"]) == 1
    engine.replied(TEXT, ("a", "b", "d", "c", "a"))
    assert engine.behind.prompt["multi_modal_uuids"]["video"] != ids["video"], (
        "another order is another video"
    )


def test_without_a_video_what_is_sent_is_what_it_was(tmp_path: Path) -> None:
    engine = Filming(tmp_path)
    engine.replied(f"{FRAME}\n{FRAME}\n?", ("a", "b"))
    assert (
        engine.behind.prompt["multi_modal_data"].keys()
        == engine.behind.prompt["multi_modal_uuids"].keys()
        == {"image"}
    )
    engine.replied("?", ())
    assert engine.behind.prompt.keys() == {"prompt"}


@pytest.mark.parametrize("n_tokens", [0, 12, 17, 24])
def test_a_video_of_other_tokens_than_its_frames_has_no_answer(tmp_path: Path, n_tokens: int) -> None:
    with pytest.raises(RequestError, match=f"made {n_tokens} tokens .* all frames are 18") as failed:
        Filming(tmp_path, n_tokens).replied()
    assert failed.value.kind == ErrorKind.REJECTED


@pytest.mark.parametrize(("video", "n_frames"), [(Grid(2, 8, 8), 3), (Grid(2, 8, 8), 4), (Grid(8, 8, 8), 16)])
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
