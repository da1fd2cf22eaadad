"""A replica and its writer: few parts, no lost neighbour of a reply that fails, and killers asked alone."""

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base.errors import RunError
from cardiolens.config.sweep import StreamSpec
from cardiolens.inference.engine.ask import (
    Ask,
    Engine,
    EngineDeadError,
    ErrorKind,
    Pictures,
    Reply,
    RequestError,
)
from cardiolens.inference.engine.readers import Simulated
from cardiolens.inference.stream.loader import STUDY_ASKS, Row
from cardiolens.inference.stream.replica import Replica
from cardiolens.inference.stream.writer import write_completions
from cardiolens.storage import schemas, tables


def ask(number: int, attempt: int = 1) -> Row:
    return {
        **{"request_key": f"{number:032x}", "system": "system", "prompt": "text", "frame_keys": ()},
        **{"answer_type": "single", "option_keys": ("A", "B"), "answer_format": "letters"},
        **{"max_tokens": 8, "attempt": attempt, "arm_id": None, "qa_id": None},
    }


def study_of(*asks: Row) -> pa.Table:
    """A study as it comes from the loader."""
    return pa.Table.from_pylist([{"study_id": "S", "part": "", "asks": asks, "pictures": []}], STUDY_ASKS)


STUDIES = [study_of(*(ask(100 * study + number) for number in range(100))) for study in range(6)]


async def answered(replica: Replica) -> list[dict[str, int]]:
    async def one(study: pa.Table) -> dict[str, int]:
        (counters,) = [row async for part in replica(study) for row in part.to_pylist()]
        return counters

    return await asyncio.gather(*map(one, STUDIES))


@pytest.mark.parametrize(("flush_rows", "n_parts"), [(256, 3), (100, 6)])
def test_an_instant_reader_fills_its_parts(tmp_path, flush_rows, n_parts):
    replica = Replica(
        lambda: Simulated(lambda ask: "ANSWER: A"), tmp_path, 8, StreamSpec(flush_rows=flush_rows)
    )
    counters = asyncio.run(answered(replica))
    assert [dict(row["counters"])["ok"] for row in counters] == [100] * 6
    assert len(tables.parts(tmp_path)) == n_parts
    keys = tables.read(tmp_path, schemas.COMPLETIONS)["request_key"].to_pylist()
    assert sorted(keys) == [f"{100 * study + number:032x}" for study in range(6) for number in range(100)]


class Held(Simulated):
    """Reader that keeps one request until another was asked."""

    def __init__(self, held: str, until: str) -> None:
        super().__init__(lambda ask: "ANSWER: A")
        self._held, self._until = held, until
        self._asked = asyncio.Event()

    async def answer(self, ask, pictures):
        if ask.request_key == self._until:
            self._asked.set()
        if ask.request_key == self._held:
            await self._asked.wait()
        return await super().answer(ask, pictures)


def test_a_study_that_waits_for_the_disk_does_not_keep_the_next_from_an_idle_engine(tmp_path):
    """Three places for four studies: two are answered, and the third waits for the fourth."""
    keys = [f"{number:032x}" for number in range(4)]
    replica = Replica(lambda: Held(keys[2], keys[3]), tmp_path, 8, StreamSpec(flush_seconds=1800))
    places = asyncio.Semaphore(3)

    async def one(study):
        async with places:
            async for _ in replica(study):
                pass

    async def together():
        await asyncio.wait_for(asyncio.gather(*map(one, map(study_of, map(ask, range(4))))), timeout=300)

    asyncio.run(together())
    assert sorted(tables.read(tmp_path, schemas.COMPLETIONS)["request_key"].to_pylist()) == keys


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
    made = {"request_key": f"key {number}", "text": "A", "finish_reason": "stop", "prompt_tokens": 1}
    return made | {"status": "ok", "node": "here", "attempt": 1} | changes


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


class Poisoned(Engine):
    """Engine that fails at its second request in a way that no engine announces, and then answers."""

    def __init__(self) -> None:
        self.asked = 0
        self._failed = asyncio.Event()

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        self.asked += 1
        if self.asked == 2:
            await asyncio.sleep(0.05)  # while others are asked
            self._failed.set()
            raise RecursionError("maximum recursion depth exceeded")
        await self._failed.wait()
        await asyncio.sleep(0.1)
        return Reply(text="A", finish_reason="stop")


def test_what_was_in_flight_is_on_disk_before_an_unknown_error_ends_the_run(tmp_path: Path) -> None:
    study = study_of(*map(ask, range(32)))
    engine = Poisoned()

    async def run() -> None:
        replica = Replica(lambda: engine, tmp_path, 8, StreamSpec(flush_rows=4, flush_seconds=60))
        async for _ in replica(study):
            pass

    with pytest.raises(RecursionError):
        asyncio.run(run())
    assert engine.asked == 8, "what was in flight, and nothing after it"
    assert tables.read(tmp_path, schemas.COMPLETIONS).num_rows == 7


class Quick(Engine):
    """Engine that counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        self.asked += 1
        await asyncio.sleep(0.05)
        return Reply(text="A", finish_reason="stop")


def test_nothing_more_is_asked_once_a_completion_cannot_be_written(tmp_path: Path) -> None:
    """What is asked of a server is paid for, and would be lost like the first."""
    engine, folder = Quick(), tmp_path / "completions"
    folder.touch()

    async def run() -> None:
        replica = Replica(lambda: engine, folder, 8, StreamSpec(flush_rows=4))
        async for _ in replica(study_of(*map(ask, range(400)))):
            pass

    with pytest.raises(RunError, match="cannot be written"):
        asyncio.run(run())
    assert engine.asked < 200


N, DEADLY = 200, f"{7:032x}"


class Deadly(Engine):
    """Dies of one request; rejects all others, or answers them."""

    def __init__(self, *, rejects: bool) -> None:
        self.starts, self.in_flight, self.most_at_once, self.beside_deadly = 0, 0, 0, 0
        self._rejects, self._dead = rejects, False

    async def start(self) -> None:
        self.starts += 1
        self._dead = False

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        self.in_flight += 1
        self.most_at_once = max(self.most_at_once, self.in_flight)
        await asyncio.sleep(0.01)
        if ask.request_key == DEADLY:
            self.beside_deadly, self._dead = self.in_flight - 1, True
        self.in_flight -= 1
        if self._dead:
            raise EngineDeadError("out of memory")
        if self._rejects:
            raise RequestError(ErrorKind.REJECTED, "too long")
        return Reply(text="A", finish_reason="stop")


def run(folder: Path, engine: Deadly, attempt: int) -> None:
    study = study_of(*(ask(number, attempt) for number in range(N)))

    async def ask_all() -> None:
        replica = Replica(lambda: engine, folder, N, StreamSpec(flush_seconds=0.1))
        async for _ in replica(study):
            pass

    asyncio.run(ask_all())


def test_what_was_rejected_is_asked_again_at_once_and_what_killed_alone(tmp_path: Path) -> None:
    run(tmp_path, Deadly(rejects=True), 1)
    again = Deadly(rejects=False)
    run(tmp_path, again, 2)
    assert again.starts == 2, "one start, and one after the deadly request"
    assert again.beside_deadly == 0
    assert again.most_at_once > N / 2, "all but the few that came before the deadly one"
