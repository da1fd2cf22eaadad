"""The end of a stream in which nothing is completed: later where an engine loads, never while parts come."""

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from cardiolens.base.errors import RunError
from cardiolens.config.sweep import StreamSpec
from cardiolens.inference.stream import pipeline
from cardiolens.storage import schemas, tables


def silent() -> Iterator[pa.Table]:
    """Rows that never come."""
    time.sleep(30)
    yield from ()


def test_nothing_completed_is_an_error_that_names_the_settings(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"completed for 0\.4 s.*stream\.stall_seconds"):
        list(pipeline._watched(silent(), tmp_path, 0.4, 5))


def test_a_part_on_disk_starts_the_clock_anew(tmp_path: Path) -> None:
    began = time.monotonic()

    def writing() -> Iterator[pa.Table]:
        for _ in range(4):
            time.sleep(0.3)
            tables.write_part(tmp_path, schemas.COMPLETIONS.empty_table(), schemas.COMPLETIONS)
        time.sleep(30)
        yield from ()

    with pytest.raises(RunError, match="no request was completed"):
        list(pipeline._watched(writing(), tmp_path, 0.8, 5))
    assert time.monotonic() - began > 1.2 + 0.7


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
