"""The stream around the engines: its blocks and studies on their way, its end, what is told of errors."""

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cohort import make_cohort, reader, sweep_spec

from cardiolens.base.errors import RunError
from cardiolens.config.sweep import StreamSpec
from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.plan.missing import WORK, missing
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.stream import loader, pipeline
from cardiolens.inference.stream.loader import (
    STUDY_ASKS,
    Row,
    StudyLoader,
)
from cardiolens.inference.stream.pipeline import cause_of
from cardiolens.inference.stream.replica import StudyInFlight
from cardiolens.inference.stream.replica_resources import blocks, blocks_in_flight
from cardiolens.storage import schemas, tables


class Clock:
    """A clock that stands still until it was looked at."""

    def __init__(self) -> None:
        self.seconds, self._looks = 0.0, 0

    def monotonic(self) -> float:
        self._looks += 1
        return self.seconds

    def advance(self, seconds: float) -> None:
        until = self._looks + 4  # whoever looks twice at a time has seen all that was done before
        while self._looks < until:
            time.sleep(0.001)
        self.seconds += seconds


def test_a_part_on_disk_starts_the_clock_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, over = Clock(), threading.Event()
    monkeypatch.setattr(pipeline, "time", clock)

    def writing() -> Iterator[pa.Table]:
        for _ in range(4):
            clock.advance(0.07)
            tables.write_part(tmp_path, schemas.COMPLETIONS.empty_table(), schemas.COMPLETIONS)
        clock.advance(0.11)
        over.wait()
        yield from ()

    with pytest.raises(RunError, match="no request was completed"):
        list(pipeline._watched(writing(), tmp_path, 0.1, 5))
    over.set()
    assert len(tables.parts(tmp_path)) == 4
    assert clock.seconds == pytest.approx(4 * 0.07 + 0.11)


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ({"engine": "vllm"}, 90),
        ({"engine": "oracle", "simulated": True}, 10),
        ({"engine": "http", "http": "x"}, 10),
    ],
)
def test_only_models_that_load_have_the_time_of_loading(model: dict[str, Any], limit: float) -> None:
    given = SimpleNamespace(**{"simulated": False, "http": None} | model)
    assert pipeline._stall_limit(given, StreamSpec(stall_seconds=10)) == limit  # type: ignore[arg-type]


WRAPPED = """\x1b[36mray::MapWorker(MapBatches(Replica)).submit()\x1b[39m (pid=1, ip=192.0.2.2)
ValueError: inner
second line

The above exception was the direct cause of the following exception:

\x1b[36mray::MapWorker(MapBatches(Replica)).submit()\x1b[39m (pid=1, ip=192.0.2.2)
  File "replica.py", line 7, in __call__
    raise {raised}
{raised}

The above exception was the direct cause of the following exception:

\x1b[36mray::MapWorker(MapBatches(Replica)).submit()\x1b[39m (pid=1, ip=192.0.2.2)
ray.exceptions.UserCodeException: UDF failed to process a data block.
Failed to apply UDF transform after 1/1 attempts (total backoff 0.0s).
To change retry attempts, backoff, or which errors are retried, configure `ray.data.DataContext`."""


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        ("cardiolens.base.errors.RunError: the engine died again", "the engine died again"),
        ("FileNotFoundError: [Errno 2] part.parquet", "FileNotFoundError: [Errno 2] part.parquet"),
    ],
)
def test_the_error_that_was_raised_is_told_and_not_what_ray_says_of_it(raised, told):
    assert cause_of(RuntimeError(WRAPPED.format(raised=raised))) == f"the stream ended early: {told}"


def test_an_empty_wrapper_hides_nothing_and_a_full_disk_of_ray_has_a_remedy():
    error = RuntimeError("ray::MapBatches()\nray.exceptions.OutOfDiskError: Local disk is full\nuse `df`")
    error.__cause__ = ValueError()
    told = cause_of(error)
    assert told.startswith(
        "the stream ended early: ray.exceptions.OutOfDiskError: Local disk is full where Ray"
    )
    assert "raise RAY_DEFAULT_OBJECT_STORE_MEMORY_PROPORTION" in told


class Unreached:
    """A replica of a server that nobody can reach."""

    async def __call__(self, block: pa.Table) -> AsyncIterator[pa.Table]:
        await asyncio.sleep(0.01)
        if block.num_rows:
            raise RunError("cannot be reached")
        yield block

    async def close(self) -> None: ...


def test_an_error_of_every_block_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    work = [pa.table({"row": [number]}) for number in range(20)]
    with pytest.raises(RunError, match="cannot be reached"):
        list(pipeline.answers_here(Unreached, lambda block: iter([block]), work, 20))  # type: ignore[arg-type]
    gc.collect()
    assert caplog.text == ""


def served_by(name: str, **fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"name": name, "http": None, "simulated": False, "engine": "vllm"} | fields)


SERVER = served_by("server", http="address", engine="http")
ORACLE = served_by("oracle", simulated=True, engine="oracle")
LOCAL = served_by("local")


@pytest.mark.parametrize(
    ("left", "none_needed"),
    [
        ({SERVER.name: 9}, True),
        ({SERVER.name: 9, ORACLE.name: 9}, True),
        ({SERVER.name: 9, ORACLE.name: 900}, False),
        ({SERVER.name: 9, LOCAL.name: 9}, False),
        ({ORACLE.name: 9}, False),
    ],
)
def test_no_cluster_is_needed_for_few_requests_beside_a_server(
    left: dict[str, int], none_needed: bool
) -> None:
    models = [one for one in (SERVER, ORACLE, LOCAL) if one.name in left]
    plan = SimpleNamespace(spec=SimpleNamespace(model=models, cluster=SimpleNamespace(address=None)))
    remaining = {name: SimpleNamespace(left=number) for name, number in left.items()}
    assert pipeline.need_no_cluster(plan, remaining) is none_needed  # type: ignore[arg-type]


SIZES = st.lists(st.one_of(st.integers(1, 4), st.integers(1, 3000)), min_size=1, max_size=60)


def work_of(sizes: list[int]) -> pa.Table:
    rows = [
        {"study_id": f"S{n}", "part": "p", "rows": [0] * size, "attempts": [1] * size}
        for n, size in enumerate(sizes)
    ]
    return pa.Table.from_pylist(rows, WORK)


@given(sizes=SIZES, replicas=st.integers(1, 8), most=st.integers(1, 300))
def test_every_study_is_in_one_block_in_order(sizes: list[int], replicas: int, most: int) -> None:
    work = work_of(sizes)
    divided = blocks(work, replicas, most)
    assert pa.concat_tables(divided).equals(work)
    assert all(block.num_rows for block in divided)


@given(sizes=SIZES, replicas=st.integers(1, 8), most=st.integers(1, 300))
def test_small_studies_share_a_block_and_leave_enough_blocks(
    sizes: list[int], replicas: int, most: int
) -> None:
    divided = [[len(rows) for rows in block["rows"]] for block in blocks(work_of(sizes), replicas, most)]
    for block in divided:
        assert len(block) == 1 or sum(block) <= 64
        assert len(block) <= max(1, most // 2)
    assert len(divided) >= min(len(sizes), 8 * replicas) or max(sizes) * 8 * replicas > sum(sizes)
    for block, following in pairwise(divided):  # no block could have been larger
        fits = min(64, sum(sizes) // (8 * replicas))
        assert sum(block) + following[0] > fits or len(block) == max(1, most // 2)


@given(sizes=SIZES, width=st.integers(1, 400), most=st.integers(1, 300))
def test_a_replica_holds_no_more_than_keeps_it_busy(sizes: list[int], width: int, most: int) -> None:
    divided = blocks(work_of(sizes), 1, most)
    held = blocks_in_flight(divided, width, most)
    largest = max(block.num_rows for block in divided)
    mean = sum(sizes) / len(divided)
    assert held == 1 or held * largest <= most
    at_most = max(1, most // largest)
    assert held == at_most or held >= 2
    assert held == at_most or (held - 1) * mean >= 2 * width  # also while one of them ends
    assert held <= 2 or (held - 2) * mean < 2 * width


FRAME_SIZES = st.tuples(st.integers(1, 5), st.integers(1, 7), st.sampled_from([1, 3]))


def study(name: str, sizes: list[tuple[int, int, int]]) -> Row:
    dice = np.random.default_rng(len(name))
    pictures: list[Row] = [
        {
            "key": f"{name}-{n}",
            "height": height,
            "width": width,
            "channels": channels,
            "pixels": dice.integers(0, 256, height * width * channels, np.uint8).tobytes(),
        }
        for n, (height, width, channels) in enumerate(sizes)
    ]
    return {"study_id": name, "part": "", "asks": [], "pictures": pictures}


@given(st.lists(st.lists(FRAME_SIZES, max_size=4), min_size=1, max_size=5), st.data())
def test_what_is_sent_arrives(cohort: list[list[tuple[int, int, int]]], data: st.DataObject) -> None:
    sent = [study("S" * (1 + n), sizes) for n, sizes in enumerate(cohort)]
    cut = data.draw(st.integers(0, len(sent)))
    block = pa.concat_tables(
        [
            pa.Table.from_pylist(sent[:cut], schema=STUDY_ASKS),
            pa.Table.from_pylist(sent[cut:], schema=STUDY_ASKS),
        ]
    )
    assert block.schema.equals(STUDY_ASKS)
    first = data.draw(st.integers(0, len(sent) - 1))
    if data.draw(st.booleans()):
        block = block.combine_chunks()
    arrived = block.slice(first).to_pylist()
    for ours, theirs in zip(sent[first:], arrived, strict=True):
        assert theirs["study_id"] == ours["study_id"]
        shown, meant = StudyInFlight(theirs, None), StudyInFlight(ours, None)
        for row in ours["pictures"]:
            assert np.array_equal(shown(row["key"]), meant(row["key"]))
        small = [{**row, "pixels": None} for row in theirs["pictures"]]
        assert small == [{**row, "pixels": None} for row in ours["pictures"]]


FULL = 5_000


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[pa.Table]:
    """What the loader makes of nine studies where a table takes no further study from FULL bytes on."""
    planned = plan(sweep_spec(make_cohort(tmp_path, 9), reader("constant", answer="A")))
    work = missing(planned.run.requests("constant"), tmp_path / "nothing", 1).work
    monkeypatch.setattr(loader, "TABLE_BYTES", FULL)
    return list(StudyLoader(planned.store.root, planned.volumes, Rendering(8))(work))


def size(study: Row) -> int:
    return sum(row["height"] * row["width"] * row["channels"] for row in study["pictures"])


def test_every_study_is_there_once_in_order(loaded: list[pa.Table]) -> None:
    ids = [study_id for table in loaded for study_id in table["study_id"].to_pylist()]
    assert ids == sorted(ids)
    assert len(ids) == len(set(ids)) == 9
    assert 1 < len(loaded) < 9


def test_a_table_is_full_and_holds_no_study_more(loaded: list[pa.Table]) -> None:
    for table in loaded[:-1]:
        *but_last, last = map(size, table.to_pylist())
        assert sum(but_last) < FULL <= sum(but_last) + last
