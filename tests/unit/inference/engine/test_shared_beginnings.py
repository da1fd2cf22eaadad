"""Beginnings of prompts for a hybrid model: each computed once, before any request that begins with it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine.ask import Ask, Reply
from cardiolens.inference.engine.engine_memory import SharedBeginnings, match_finely
from cardiolens.inference.engine.vllm_engine import VllmEngine
from cardiolens.inference.models.identity import Identity
from cardiolens.inference.placement.placement import Deployment

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when vLLM imports it

HEAD = "Frame 1: <image>"


class Remembering:
    """In the place of AsyncLLM: a prompt costs what no finished prompt begins with; notes all in order."""

    errored = False

    def __init__(self, *, breaks: bool = False) -> None:
        self.asked: list[str] = []
        self.finished: list[str] = []
        self.breaks = breaks

    async def generate(self, prompt: dict[str, Any], sampling: Any, request_id: str, **_: object) -> Any:
        text = prompt["prompt"]
        self.asked.append(text)
        if self.breaks and text == HEAD:
            raise ValueError("cannot end here")
        cached = max((len(old) for old in self.finished if text.startswith(old)), default=0)
        await asyncio.sleep(0.01)
        self.finished.append(text)
        said = SimpleNamespace(text="A", token_ids=[1], logprobs=None, finish_reason="stop")
        yield SimpleNamespace(
            outputs=[said], prompt_token_ids=[1] * len(text), num_cached_tokens=min(cached, len(text) - 1)
        )


class Hybrid(VllmEngine):
    def __init__(self, tmp_path: Any, behind: Remembering, *, hybrid: bool = True) -> None:
        deployment = Deployment("m", 1, 1, ((),), 0.0, 0.9, "", 0.0, "processor")
        super().__init__(ModelSpec(name="m", source="hub/m"), Identity("m-0", tmp_path, {}), 8, deployment)
        self._engine = behind  # type: ignore[assignment]
        self._beginnings = SharedBeginnings() if hybrid else None
        self.__dict__["_chat"] = SimpleNamespace(up_to_last_frame=lambda prompt, _: prompt[: len(HEAD)])

    def _prompt(self, ask: Ask, pictures: object) -> Any:
        return {"prompt": f"{HEAD if ask.frame_keys else ''}{ask.text}"}


def replies(engine: Hybrid, *texts: str, frames: tuple[str, ...] = ("f",)) -> list[Reply]:
    async def ask() -> list[Reply]:
        asks = [Ask(text, "", text, frames, "single", ("A", "B"), 8) for text in texts]
        return await asyncio.gather(
            *(engine.answer(one, lambda _: np.zeros((1, 1), np.uint8)) for one in asks)
        )

    return asyncio.run(ask())


def test_requests_wait_for_their_beginning_which_is_computed_once(tmp_path: Any) -> None:
    behind = Remembering()
    answers = replies(Hybrid(tmp_path, behind), " one?", " two?", " three?")
    assert behind.asked[0] == HEAD
    assert sorted(behind.asked[1:]) == [f"{HEAD} one?", f"{HEAD} three?", f"{HEAD} two?"]
    computed = sum(reply.prompt_tokens - reply.cached_tokens for reply in answers)
    assert computed == len(HEAD) + len(" one?") + len(" two?") + len(" three?"), "the beginning counts, once"


def test_without_it_each_request_in_flight_computes_all(tmp_path: Any) -> None:
    answers = replies(Hybrid(tmp_path, Remembering(), hybrid=False), " one?", " two?")
    assert [reply.cached_tokens for reply in answers] == [0, 0]


def test_a_request_without_frames_has_no_beginning_of_its_own(tmp_path: Any) -> None:
    behind = Remembering()
    replies(Hybrid(tmp_path, behind), " one?", frames=())
    assert behind.asked == [" one?"]


def test_a_beginning_that_fails_fails_no_request(tmp_path: Any) -> None:
    answers = replies(Hybrid(tmp_path, Remembering(breaks=True)), " one?", " two?")
    assert [reply.text for reply in answers] == ["A", "A"]


@pytest.mark.parametrize(
    ("hybrid", "caching", "unit", "expected"),
    [
        (True, True, None, (True, 16)),
        (True, True, 32, (True, 32)),
        (False, True, None, (False, None)),
        (True, False, None, (False, None)),
    ],
)
def test_only_a_hybrid_model_with_a_prefix_cache_is_matched_finely(
    hybrid: bool, caching: bool, unit: int | None, expected: tuple[bool, int | None]
) -> None:
    config: Any = SimpleNamespace(
        model_config=SimpleNamespace(is_hybrid=hybrid),
        cache_config=SimpleNamespace(enable_prefix_caching=caching, prefix_match_unit=unit),
    )
    assert (match_finely(config), config.cache_config.prefix_match_unit) == expected
