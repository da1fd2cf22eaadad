"""Requests of a plan as they were planned, for benchmarks that ask them past the stream."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from cardiolens.inference.plan.request import Request
from cardiolens.protocol.dialogue.chain import FrameRef
from cardiolens.storage import tables
from cardiolens.storage.schemas import REQUESTS


def read_requests(part: Path, rows: Sequence[int]) -> list[Request]:
    """Read the given rows of one part, in the given order."""
    taken = tables.read_part(part, REQUESTS).take(pa.array(rows, pa.int32()))
    return [
        Request(
            **row
            | {"frames": tuple(FrameRef(**frame) for frame in row["frames"])}
            | {name: tuple(row[name]) for name in ("option_keys", "exclusive", "flags")}
        )
        for row in taken.to_pylist()
    ]
