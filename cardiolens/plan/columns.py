"""Requests collected as columns: thousands a second, where a dictionary a row would take most of the time."""

from collections import Counter
from typing import Any

import pyarrow as pa

from cardiolens.select.selection import Frame
from cardiolens.tables import REQUESTS

_LISTS = ("frames",)


class RequestColumns:
    """A growing part of the `requests` table."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in REQUESTS.names if name not in _LISTS}
        self._frames: list[int] = []  # a row's place among the distinct frame lists
        self._distinct: dict[tuple[Frame, ...], int] = {}

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, frames: tuple[Frame, ...], row: dict[str, object]) -> None:
        """One request; `row` holds every column but `frames`."""
        self._frames.append(self._distinct.setdefault(frames, len(self._distinct)))
        for name, column in self._columns.items():
            column.append(row[name])

    @property
    def most_frames(self) -> int:
        """Frames of the longest list; 0 without any."""
        return max(map(len, self._distinct), default=0)

    def status_counts(self) -> Counter[str]:
        return Counter(self._columns["status"])

    def table(self) -> pa.Table:
        """The collected rows."""
        arrays = [self._frame_lists() if name in _LISTS else self._array(name) for name in REQUESTS.names]
        return pa.Table.from_arrays(arrays, schema=REQUESTS)

    def _array(self, name: str) -> pa.Array:
        return pa.array(self._columns[name], type=REQUESTS.field(name).type)

    def _frame_lists(self) -> pa.Array:
        """Each distinct list made once, then repeated by its place."""
        flat = [frame for frames in self._distinct for frame in frames]
        offsets = [0]
        for frames in self._distinct:
            offsets.append(offsets[-1] + len(frames))
        references = pa.StructArray.from_arrays(
            [
                pa.array([frame.volume_id for frame in flat], pa.string()),
                pa.array([frame.idx for frame in flat], pa.int32()),
            ],
            names=["volume_id", "idx"],
        )
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), references)
        return lists.take(pa.array(self._frames, pa.int32())).cast(REQUESTS.field("frames").type)
