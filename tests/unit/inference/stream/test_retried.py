"""Requests that failed in an earlier run: only those that killed an engine are asked alone."""

import asyncio
from pathlib import Path

import pyarrow as pa

from cardiolens.config.sweep import StreamSpec
from cardiolens.inference.engine.ask import (
    Ask,
    EngineDeadError,
    ErrorKind,
    FrameWork,
    Pictures,
    Reply,
    RequestError,
)
from cardiolens.inference.stream.loader import STUDY_ASKS
from cardiolens.inference.stream.replica import Replica

N, DEADLY = 200, "key 7"


class Engine:
    """Dies of one request; rejects all others, or answers them."""

    mortal = True

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

    def frames(self) -> FrameWork:
        return FrameWork()

    def close(self) -> None: ...


def run(folder: Path, engine: Engine, attempt: int) -> None:
    asks = [
        {
            "request_key": f"key {number}",
            "system": "",
            "prompt": "",
            "frame_keys": [],
            "answer_type": "single",
        }
        | {"option_keys": ["A"], "max_tokens": 8, "answer_format": "letters", "attempt": attempt}
        for number in range(N)
    ]
    study = pa.Table.from_pylist(
        [{"study_id": "S", "part": "", "asks": asks, "pictures": []}], schema=STUDY_ASKS
    )

    async def ask_all() -> None:
        replica = Replica(lambda: engine, folder, N, StreamSpec(flush_seconds=0.1))
        async for _ in replica(study):
            pass

    asyncio.run(ask_all())


def test_what_was_rejected_is_asked_again_at_once_and_what_killed_alone(tmp_path: Path) -> None:
    run(tmp_path, Engine(rejects=True), 1)
    again = Engine(rejects=False)
    run(tmp_path, again, 2)
    assert again.starts == 2, "one start, and one after the deadly request"
    assert again.beside_deadly == 0
    assert again.most_at_once > N / 2, "all but the few that came before the deadly one"
