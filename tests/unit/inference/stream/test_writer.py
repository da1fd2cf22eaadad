"""Completions on disk: in few parts, however fast a reader answers."""

import asyncio

import pytest

from cardiolens.config.sweep import StreamSpec
from cardiolens.inference.engine.readers import Simulated
from cardiolens.inference.stream.loader import STUDY_ASKS, AskRow
from cardiolens.inference.stream.replica import Replica
from cardiolens.storage import schemas, tables


def ask(number: int) -> AskRow:
    return {
        "request_key": f"{number:032x}",
        "system": "system",
        "prompt": "text",
        "frame_keys": (),
        "answer_type": "single",
        "option_keys": ("A", "B"),
        "max_tokens": 8,
        "answer_format": "letters",
        "attempt": 1,
        "arm_id": None,
        "qa_id": None,
    }


STUDIES = [
    {
        "study_id": f"S{study}",
        "part": "",
        "asks": [ask(100 * study + number) for number in range(100)],
        "pictures": [],
    }
    for study in range(6)
]


async def answered(replica: Replica) -> list[dict[str, int]]:
    async def one(study: dict[str, object]) -> dict[str, int]:
        batch = tables.pa.Table.from_pylist([study], schema=STUDY_ASKS)
        (counters,) = [row async for part in replica(batch) for row in part.to_pylist()]
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
    studies = [{"study_id": f"S{n}", "asks": [ask(n)], "pictures": []} for n in range(4)]
    replica = Replica(lambda: Held(keys[2], keys[3]), tmp_path, 8, StreamSpec(flush_seconds=3600))
    places = asyncio.Semaphore(3)

    async def one(study):
        async with places:
            async for _ in replica(tables.pa.Table.from_pylist([study], schema=STUDY_ASKS)):
                pass

    async def together():
        await asyncio.wait_for(asyncio.gather(*map(one, studies)), timeout=300)

    asyncio.run(together())
    assert sorted(tables.read(tmp_path, schemas.COMPLETIONS)["request_key"].to_pylist()) == keys
