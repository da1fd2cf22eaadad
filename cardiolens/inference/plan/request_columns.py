"""Collect requests as columns; one dictionary per request would take most of the planning time."""

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

import pyarrow as pa

from cardiolens.inference.plan.request import FrameRef, Request
from cardiolens.inference.plan.shown_examples import ShownExample
from cardiolens.inference.plan.shown_examples import rows_of as example_rows
from cardiolens.protocol.dialogue.chain import Chain, Samples, Steps, row_of, rows_of
from cardiolens.protocol.dialogue.frame_requests import Offer
from cardiolens.protocol.select.selection import Frame
from cardiolens.storage.schemas import REQUESTS

_SCALARS = tuple(name for name in REQUESTS.names if name != "frames")
_scalars_of = attrgetter(*_SCALARS)


class RequestColumns:
    """A growing part of the `requests` table."""

    def __init__(self) -> None:
        self._columns: tuple[list[object], ...] = tuple([] for _ in _SCALARS)
        self._frames: list[int] = []  # per row: index of its frame list in `_distinct`
        self._distinct: dict[tuple[Frame | FrameRef, ...], int] = {}
        self.stages: list[dict[str, object]] = []  # rows of the `stages` table, for requests that are chains
        self.choices: list[dict[str, object]] = []  # rows of the `choices` table
        self.offers: dict[str, Offer] = {}  # offers of the choices, by key
        self.examples: list[dict[str, object]] = []  # rows of the `examples` table
        self._most_chosen = 0  # frames of a chain or with examples, which `_distinct` does not hold

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, request: Request) -> None:
        """Append one request."""
        self._frames.append(self._distinct.setdefault(request.frames, len(self._distinct)))
        for column, value in zip(self._columns, _scalars_of(request), strict=True):
            column.append(value)

    def add_chain(self, request_key: str, chain: Chain) -> None:
        """Append the chain that a request represents."""
        if isinstance(chain, Steps | Samples):
            self.stages += rows_of(request_key, chain.stages)
        else:
            self.choices.append(row_of(request_key, chain))
            self.offers[chain.offer.key] = chain.offer
            self._most_chosen = max(self._most_chosen, chain.most_frames)

    def add_examples(self, request: Request, examples: Sequence[ShownExample]) -> None:
        """Append the examples that a request shows before its own frames."""
        self.examples += example_rows(request.request_key, examples)
        n_frames = len(request.frames) + sum(len(example.frames) for example in examples)
        self._most_chosen = max(self._most_chosen, n_frames)

    @property
    def most_frames(self) -> int:
        """The largest number of frames that a request shows or lets a reader choose; 0 without frames."""
        return max((self._most_chosen, *map(len, self._distinct)))

    def status_counts(self) -> Counter[str]:
        """Count the requests of each status."""
        return Counter(map(str, self._columns[_SCALARS.index("status")]))

    def table(self) -> pa.Table:
        """Return the collected rows as a table."""
        arrays = {
            name: pa.array(column, type=REQUESTS.field(name).type)
            for name, column in zip(_SCALARS, self._columns, strict=True)
        }
        arrays["frames"] = self._frame_lists()
        return pa.Table.from_arrays([arrays[name] for name in REQUESTS.names], schema=REQUESTS)

    def _frame_lists(self) -> pa.Array:
        """Build the column of frame lists: store each distinct list once, then repeat by index."""
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
