"""Join a model's completions to its requests, one block of studies at a time.

Requests are stored by study, completions in the order in which engines finished them. Both are partitioned by
a hash of their key and joined partition by partition; the completions are then written by request block.
Memory does not grow with the number of requests.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.score.verdicts.final_completions import duplicates, finals
from cardiolens.storage import tables
from cardiolens.storage.schemas import COMPLETIONS, PLANNED, REQUESTS
from cardiolens.storage.spool import HashPartitions, Spool, number_keys

BLOCK = 2**16  # requests from which a block is full; the rows of a share are about as many

_REQUEST_COLUMNS = (
    "arm_id",
    "qa_id",
    "answer_type",
    "option_keys",
    "exclusive",
    "stage",
    "status",
    "request_key",
)
_COMPLETION_COLUMNS = ("request_key", "status", "text", "finish_reason", "option_logprobs", "written_at")
_COMPLETION_SCHEMA = pa.schema([COMPLETIONS.field(name) for name in _COMPLETION_COLUMNS])
_KEYS = pa.schema([("request_key", pa.string()), ("planned", pa.bool_()), ("block", pa.int32())])


@dataclass(frozen=True, slots=True)
class AlignedCompletions:
    """Blocks of requests with their completions, and counts over all distinct requests."""

    parts: Sequence[Sequence[Path]]  # of requests, by block
    counts: Counter[str]  # by how planned requests ended; agreeing and disagreeing doubles; unrequested rows
    attempted_steps: frozenset[str]  # of the steps, those with any completion
    spool: Spool = field(repr=False)
    places: Sequence[Sequence[int]] = field(repr=False)  # in `spool`, by block

    def blocks(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield the requests of each block and all their completions; blocks may share completions."""
        for parts, places in zip(self.parts, self.places, strict=True):
            requests = [tables.read_part(part, REQUESTS, _REQUEST_COLUMNS) for part in parts]
            completions = [self.spool.part(place) for place in places]
            yield pa.concat_tables(requests), tables.concat(completions, _COMPLETION_SCHEMA)


def align_completions(requests: Path, completions: Path, steps: pa.Array) -> AlignedCompletions:
    """Join a folder's completions to its requests; `steps` are the request keys of chain stages."""
    n_shares = 1 + max(map(tables.count_rows, (requests, completions))) // BLOCK
    parts = _blocks_of(requests)
    keys = HashPartitions(_KEYS, n_shares, _keys_of(parts))
    replies = tables.from_parts(
        completions, COMPLETIONS, _COMPLETION_COLUMNS, partial(HashPartitions, _COMPLETION_SCHEMA, n_shares)
    )
    spool, places = Spool(_COMPLETION_SCHEMA), [list[int]() for _ in parts]
    counts: Counter[str] = Counter(engine_error=0, missing=0, agreeing=0, disagreeing=0, unrequested=0)
    attempted: set[str] = set()
    for share in range(n_shares):
        key_rows, share_replies = keys.of(share), replies.of(share)
        lookup = _Lookup.of(key_rows, share_replies)
        requested = share_replies.filter(pa.array(lookup.times > 0))
        counts.update(_count_endings(key_rows, requested))
        of_steps = share_replies["request_key"].filter(pc.is_in(share_replies["request_key"], steps))
        counts["unrequested"] += share_replies.num_rows - requested.num_rows - len(of_steps)
        attempted.update(of_steps.to_pylist())
        for block, rows in lookup.by_block(np.asarray(key_rows["block"])):
            places[block].append(spool.add(share_replies.take(rows)))
    return AlignedCompletions(parts, counts, frozenset(attempted), spool, places)


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


def _keys_of(blocks: Sequence[Sequence[Path]]) -> Iterator[pa.Table]:
    """Yield the distinct request keys of each part, with their block."""
    for number, parts in enumerate(blocks):
        for part in parts:
            rows = tables.read_part(part, REQUESTS, ("request_key", "status"))
            planned = pc.equal(rows["status"], PLANNED)
            rows_of_part = pa.table({"request_key": rows["request_key"], "planned": planned})
            distinct = rows_of_part.group_by("request_key").aggregate([("planned", "any")])
            block = pa.array(np.full(distinct.num_rows, number, np.int32))
            yield pa.table([distinct["request_key"], distinct["planned_any"], block], schema=_KEYS)


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Index from the replies of one partition to the blocks that request them."""

    times: np.ndarray  # blocks that ask for it, by reply
    first: np.ndarray  # of these, the place in `order`
    order: np.ndarray  # rows of keys, those of one key together

    @staticmethod
    def of(key_rows: pa.Table, reply_rows: pa.Table) -> "_Lookup":
        key_codes, reply_codes = number_keys(key_rows, reply_rows)
        order = np.argsort(key_codes, kind="stable")
        first, end = (np.searchsorted(key_codes[order], reply_codes, side) for side in ("left", "right"))
        return _Lookup(end - first, first, order)

    def by_block(self, block: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each block that has replies, with their rows in order; `block` is the block of each key."""
        reply = np.repeat(np.arange(len(self.times)), self.times)
        before = np.repeat(np.cumsum(self.times) - self.times, self.times)
        asking = block[self.order[np.repeat(self.first, self.times) + np.arange(len(reply)) - before]]
        # parts of one block may share a key: each reply once a block
        pairs = np.unique(asking.astype(np.int64) * len(self.times) + reply)
        asking, reply = np.divmod(pairs, max(len(self.times), 1))
        for number in np.unique(asking):
            first, end = np.searchsorted(asking, [number, number + 1])
            yield int(number), reply[first:end]


def _count_endings(key_rows: pa.Table, completions: pa.Table) -> Counter[str]:
    """Count distinct planned requests by how they ended: a final status, `engine_error` or `missing`."""
    planned = pc.unique(key_rows.filter(key_rows["planned"])["request_key"])
    final = finals(completions)
    counts = Counter(final["status"].to_pylist())
    n_attempted = len(pc.unique(completions["request_key"]))
    counts["engine_error"] = n_attempted - final.num_rows
    counts["missing"] = len(planned) - n_attempted
    surplus = duplicates(completions)
    counts["agreeing"], counts["disagreeing"] = surplus.agreeing, surplus.disagreeing
    return counts
