"""What a replica warns of reaches the person who runs the sweep."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from cardiolens.config.sweep import StreamSpec
from cardiolens.inference.engine.ask import Ask, EngineDeadError, FrameWork, Pictures, Reply
from cardiolens.inference.stream import pipeline, replica
from cardiolens.inference.stream.messages import COUNTERS, PROGRESS, STUDY_ASKS
from cardiolens.inference.stream.replica import Replica


class Overloaded:
    """Dies with more than four requests in flight."""

    mortal = True

    async def start(self) -> None:
        self.dead, self.open = False, 0

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        self.open += 1
        self.dead = self.dead or self.open > 4
        await asyncio.sleep(0)
        self.open -= 1
        if self.dead:
            raise EngineDeadError("torch.OutOfMemoryError: CUDA out of memory")
        return Reply("A", "stop")

    def frames(self) -> FrameWork:
        return FrameWork()

    def close(self) -> None: ...


@pytest.fixture
def actor(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A replica takes this process for its actor's; its handlers end with the test."""
    ours = logging.getLogger("cardiolens")
    before = list(ours.handlers)
    monkeypatch.setattr(replica, "_answered_before_restart", lambda completions: {})
    monkeypatch.setattr(replica, "seat", lambda: "node:0")
    monkeypatch.setattr(replica.stopping, "is_connected", lambda: True)
    monkeypatch.setattr(replica.stopping, "driver_stopping", lambda: False)
    yield
    ours.handlers[:] = before


@pytest.mark.usefixtures("actor")
def test_a_death_under_load_is_in_the_progress_of_its_study(tmp_path: Path) -> None:
    asks = [
        {
            "request_key": f"key {number}",
            "system": "",
            "prompt": "",
            "frame_keys": [],
            "answer_type": "single",
        }
        | {"option_keys": ["A"], "max_tokens": 8, "answer_format": "letters", "attempt": 1}
        for number in range(20)
    ]
    study = pa.Table.from_pylist(
        [{"study_id": "S", "part": "", "asks": asks, "pictures": []}], schema=STUDY_ASKS
    )

    async def progress() -> list[dict[str, Any]]:
        made = Replica(Overloaded, tmp_path, 8, StreamSpec(flush_seconds=0.1))
        rows = [row async for table in made(study) for row in table.to_pylist()]
        assert made._listening is not None
        made._listening.cancel()
        return rows

    (row,) = asyncio.run(progress())
    assert row["ok"] == 20
    assert any("CUDA out of memory" in told and "at most 4 at once" in told for told in row["warnings"])


def test_the_driver_tells_each_warning_once_with_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    zero = dict.fromkeys(COUNTERS, 0)
    rows = [
        {"study_id": name, "seat": name, "stages": [], "warnings": warnings, **zero}
        for name, warnings in (("a", ["less is kept"]), ("b", ["less is kept", "it died"]), ("c", []))
    ]

    @contextmanager
    def answers(*_: object) -> Iterator[list[pa.Table]]:
        yield [pa.Table.from_pylist([row], schema=PROGRESS) for row in rows]

    monkeypatch.setattr(pipeline, "_answers", answers)
    monkeypatch.setattr(pipeline, "_completions", lambda plan, model: tmp_path)
    cluster = SimpleNamespace(grace_seconds=1.0)
    spec = SimpleNamespace(model=[SimpleNamespace(name="m")], stream=StreamSpec(), cluster=cluster)
    plan: Any = SimpleNamespace(spec=spec)
    deployment: Any = SimpleNamespace(model="m")
    missing: Any = SimpleNamespace(work=None)
    streamed = pipeline.stream(plan, deployment, missing, lambda counters: None)
    assert streamed.seats == {"a", "b", "c"}
    assert [record.getMessage() for record in caplog.records] == ["model m: less is kept", "model m: it died"]
