"""A reply that no table can hold, and an engine that fails without a name: neighbours are on disk."""

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.config.sweep import StreamSpec
from cardiolens.inference.engine.ask import Ask, FrameWork, Pictures, Reply
from cardiolens.inference.stream.loader import STUDY_ASKS
from cardiolens.inference.stream.replica import Replica
from cardiolens.inference.stream.writer import write_completions
from cardiolens.storage import schemas, tables

POISON = [
    {"text": "half \ud83d of a pair"},
    {"finish_reason": "\udfff"},
    {"error": "\ud800"},
    {"prompt_tokens": 2**31},
    {"output_tokens": 2**70},
    {"prompt_tokens": "many"},
    {"option_logprobs": [("\ud800", 0.0)]},
    {"text": ["no", "text"]},
]


def row(number: int, **changes: Any) -> Any:
    made = {
        "request_key": f"key {number}",
        "text": "A",
        "finish_reason": "stop",
        "prompt_tokens": 1,
        "status": "ok",
    }
    return made | {"node": "here", "attempt": 1} | changes


@pytest.mark.parametrize("poison", POISON, ids=[next(iter(one)) for one in POISON])
def test_a_reply_that_cannot_be_stored_loses_no_neighbour(poison: dict[str, Any], tmp_path: Path) -> None:
    write_completions(tmp_path, [row(0), row(1, **poison), row(2)])
    kept = tables.read(tmp_path, schemas.COMPLETIONS).to_pylist()
    assert [one["status"] for one in kept] == ["ok", "engine_error", "ok"]
    assert kept[1]["request_key"] == "key 1"
    assert kept[1]["error"].startswith("its reply cannot be stored: ")
    assert kept[1]["error"].isprintable()


@given(st.lists(st.text(st.characters(codec=None)), min_size=1, max_size=8))
def test_every_reply_of_a_part_is_stored_or_named(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("part")
    write_completions(folder, [row(number, text=text) for number, text in enumerate(texts)])
    kept = tables.read(folder, schemas.COMPLETIONS).to_pylist()
    assert [one["request_key"] for one in kept] == [f"key {number}" for number in range(len(texts))]
    assert all(
        one["text"] == text or one["status"] == "engine_error" for one, text in zip(kept, texts, strict=True)
    )


class Poisoned:
    """Engine that answers late, and fails at its second request in a way that no engine announces."""

    mortal = False

    def __init__(self) -> None:
        self.asked = 0

    async def start(self) -> None: ...

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        self.asked += 1
        number = self.asked
        await asyncio.sleep(0.05 if number == 2 else 0.2)
        if number == 2:
            raise RecursionError("maximum recursion depth exceeded")
        return Reply(text="A", finish_reason="stop")

    def frames(self) -> FrameWork:
        return FrameWork()

    def close(self) -> None: ...


def test_what_was_in_flight_is_on_disk_before_an_unknown_error_ends_the_run(tmp_path: Path) -> None:
    asks = [
        {
            "request_key": f"key {number}",
            "system": "",
            "prompt": "",
            "frame_keys": [],
            "answer_type": "single",
        }
        | {"option_keys": ["A"], "max_tokens": 8, "answer_format": "letters", "attempt": 1}
        for number in range(32)
    ]
    study = pa.Table.from_pylist(
        [{"study_id": "S", "part": "", "asks": asks, "pictures": []}], schema=STUDY_ASKS
    )
    engine = Poisoned()

    async def run() -> None:
        replica = Replica(lambda: engine, tmp_path, 8, StreamSpec(flush_rows=4, flush_seconds=60))
        async for _ in replica(study):
            pass

    with pytest.raises(RecursionError):
        asyncio.run(run())
    assert engine.asked == 8, "what was in flight, and nothing after it"
    assert tables.read(tmp_path, schemas.COMPLETIONS).num_rows == 7
