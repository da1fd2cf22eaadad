"""Join a model's completions to its requests, one block of studies at a time.

Requests are stored by study, completions in the order in which engines finished them. The completions of one
model are in memory, its requests one block at a time.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.score.verdicts.final_completions import duplicates, finals
from cardiolens.storage import tables
from cardiolens.storage.schemas import COMPLETIONS, PLANNED, REQUESTS

BLOCK = 2**16  # requests from which a block is full

_REQUEST_COLUMNS = (
    *("arm_id", "qa_id", "answer_type", "option_keys", "exclusive"),
    *("stage", "status", "request_key"),
)
_COMPLETION_COLUMNS = ("request_key", "status", "text", "finish_reason", "option_logprobs", "written_at")


@dataclass(frozen=True, slots=True)
class AlignedCompletions:
    """Blocks of requests with their completions, and counts over all distinct requests."""

    parts: Sequence[Sequence[Path]]  # of requests, by block
    counts: Counter[str]  # by how planned requests ended; agreeing and disagreeing doubles
    completions: pa.Table = field(repr=False)  # of the requests, in order of arrival
    others: pa.Table = field(repr=False)  # of stages, of second turns, and of other runs

    def blocks(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield the requests of each block and all their completions; blocks may share completions."""
        for parts in self.parts:
            requests = pa.concat_tables(tables.read_part(part, REQUESTS, _REQUEST_COLUMNS) for part in parts)
            yield requests, of_keys(self.completions, requests["request_key"])


def align_completions(requests: Path, completions: Path) -> AlignedCompletions:
    """Join a folder's completions to its requests."""
    asked = tables.read(requests, REQUESTS, ("request_key", "status"))
    replies = tables.read(completions, COMPLETIONS, _COMPLETION_COLUMNS)
    is_requested = pc.is_in(replies["request_key"], pc.unique(asked["request_key"]))
    requested = replies.filter(is_requested)
    planned = pc.unique(asked.filter(pc.equal(asked["status"], PLANNED))["request_key"])
    others = replies.drop_columns(["option_logprobs"]).filter(pc.invert(is_requested))
    return AlignedCompletions(
        _blocks_of(requests), _count_endings(len(planned), requested), requested, others
    )


def of_keys(completions: pa.Table, keys: pa.ChunkedArray | pa.Array) -> pa.Table:
    """The completions of some requests."""
    return completions.filter(pc.is_in(completions["request_key"], pc.unique(keys)))


def _blocks_of(requests: Path) -> list[list[Path]]:
    """Group the parts of the request table into blocks of at least BLOCK rows."""
    blocks, filled = list[list[Path]](), BLOCK
    for part in tables.parts(requests):
        if filled >= BLOCK:
            blocks.append([])
            filled = 0
        blocks[-1].append(part)
        filled += tables.count_part(part)
    return blocks


def _count_endings(n_planned: int, completions: pa.Table) -> Counter[str]:
    """Count distinct planned requests by how they ended: a final status, `engine_error` or `missing`."""
    final, surplus = finals(completions), duplicates(completions)
    n_attempted = len(pc.unique(completions["request_key"]))
    return Counter(
        {
            **Counter(final["status"].to_pylist()),
            "engine_error": n_attempted - final.num_rows,
            "missing": n_planned - n_attempted,
            "agreeing": surplus.agreeing,
            "disagreeing": surplus.disagreeing,
        }
    )
