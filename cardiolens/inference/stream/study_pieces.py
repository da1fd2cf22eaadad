"""Divide the work of studies where there are few of them, so that no replica idles while another works.

A study is otherwise the unit that a replica answers. A piece of one is a run of its requests in the order in
which prompts begin alike, cut where two neighbours share few frames, because the replica of the later piece
computes the shared ones again.
"""

import math
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.inference.plan.missing import WORK, StudyWork
from cardiolens.inference.plan.prefix_order import SHOWN, beginnings, frames_of, shared_frames
from cardiolens.storage import tables
from cardiolens.storage.schemas import REQUESTS

FEW = 8  # studies for each replica: with so many, the last to end has little more work than the others
PIECES = 5  # for each replica, where studies are fewer; each more has frames encoded again
_REPEATED = 0.04  # of all frames to compute: the most that cuts may make replicas compute again
_QUESTION = 1.0  # cost of a request beyond its new frames, as a number of frames


def divided(work: pa.Table, replicas: int) -> pa.Table:
    """Return WORK with the costliest pieces first, some `PIECES` for each replica, where studies are few.

    A study with chains stays whole, because its chains share stages.
    """
    if replicas < 2 or work.num_rows >= FEW * replicas:
        return work
    rows: list[StudyWork] = work.to_pylist()
    studies = [_Study(row) for row in rows]
    piece = sum(study.cost.sum() for study in studies) / (PIECES * replicas)
    allowed = _REPEATED * sum(study.cost.sum() for study in studies)
    cuts = sorted(
        (repeated, number, place)
        for number, study in enumerate(studies)
        for place, repeated in study.cuts(piece)
    )
    repeats = accumulate(repeated for repeated, _, _ in cuts)
    taken: dict[int, list[int]] = {}
    for (_, number, place), so_far in zip(cuts, repeats, strict=True):
        if so_far <= allowed:
            taken.setdefault(number, []).append(place)
    pieces = [
        piece for number, study in enumerate(studies) for piece in study.pieces(sorted(taken.get(number, [])))
    ]
    pieces.sort(key=lambda costed: -costed[0])
    return pa.Table.from_pylist([row for _, row in pieces], schema=WORK)


def most_waiting(work: pa.Table, replicas: int, width: int) -> int:
    """Return how many rows of WORK one of several replicas may hold: a quarter of its part, at least 2.

    What waits at one replica cannot move to an idle one, which matters where all of the work is little. Rows
    that have the `width` requests of an engine only together are held together.
    """
    rows: int = work.num_rows
    requests: int = pc.sum(pc.list_value_length(work["rows"])).as_py()
    fill_an_engine = math.ceil(width * rows / requests)
    return rows if replicas == 1 else max(2, math.ceil(rows / replicas / 4), fill_an_engine)


class _Study:
    """The requests of one row of WORK, with what each costs after the one before it."""

    def __init__(self, row: StudyWork) -> None:
        table = tables.read_part(Path(row["part"]), REQUESTS, (*SHOWN, "stage"))
        table = table.take(pa.array(row["rows"], pa.int32()))
        numbers = beginnings(table)
        self._row = row
        self._whole = any(table["stage"].to_pylist())
        self._shared = shared_frames(numbers)
        self.cost = frames_of(numbers) - self._shared + _QUESTION

    def cuts(self, piece: float) -> Iterator[tuple[int, int]]:
        """Yield the places to cut at and the frames that each cut repeats, for pieces of about equal cost."""
        n_pieces = 1 if self._whole else min(len(self.cost), round(self.cost.sum() / piece))
        so_far = np.cumsum(self.cost) - self.cost  # before each request
        width = self.cost.sum() / max(n_pieces, 1)
        for number in range(1, n_pieces):
            low, high = np.searchsorted(so_far, [(number - 0.5) * width, (number + 0.5) * width])
            near = np.arange(max(low, 1), max(high, low + 1, 2))
            near = near[near < len(self.cost)]
            if len(near):
                distance = np.abs(so_far[near] - number * width) / width  # at most a half
                place = near[np.argmin(self._shared[near] + 2.0 * distance * math.sqrt(width))]
                yield int(place), int(self._shared[place])

    def pieces(self, places: list[int]) -> Iterator[tuple[float, StudyWork]]:
        """Yield the pieces between cuts with their costs."""
        for first, end in zip([0, *places], [*places, len(self.cost)], strict=True):
            if end > first:
                replies = self._row["replies"]
                row: StudyWork = {
                    "study_id": self._row["study_id"],
                    "part": self._row["part"],
                    "rows": self._row["rows"][first:end],
                    "attempts": self._row["attempts"][first:end],
                    "replies": replies and replies[first:end],
                }
                yield float(self.cost[first:end].sum() + self._shared[first]), row
