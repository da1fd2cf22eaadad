"""The completions of a model beside the requests that they answer, a block of studies at a time.

Requests lie by study, completions in the order in which engines gave them. Both are first shared out by
their keys, so that each key is looked up among few, and completions then lie in the blocks that ask for them.
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
from cardiolens.storage.partitions import HashPartitions, number_keys
from cardiolens.storage.spool import Spool
from cardiolens.storage.tables import COMPLETIONS, PLANNED, REQUESTS

BLOCK = 2**16  # requests from which a block is full; the rows of a share are about as many

_ASKED = ("arm_id", "qa_id", "option_keys", "status", "request_key")
_SAID = ("request_key", "status", "text", "finish_reason", "option_logprobs", "written_at")
_SAID_ROWS = pa.schema([COMPLETIONS.field(name) for name in _SAID])
_KEYS = pa.schema([("request_key", pa.string()), ("planned", pa.bool_()), ("block", pa.int32())])


@dataclass(frozen=True, slots=True)
class Aligned:
    """Blocks of requests with their completions, and counts over the distinct requests of all of them."""

    parts: Sequence[Sequence[Path]]  # of requests, by block
    counts: Counter[str]  # by how planned requests ended; agreeing and disagreeing doubles; unrequested rows
    tried: frozenset[str]  # of the steps, those with any completion
    said: Spool = field(repr=False)
    places: Sequence[Sequence[int]] = field(repr=False)  # in `said`, by block

    def blocks(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """The requests of each block, and all completions of these, which other blocks may share."""
        for parts, places in zip(self.parts, self.places, strict=True):
            asked = [tables.read_part(part, REQUESTS, _ASKED) for part in parts]
            said = [self.said.part(place) for place in places]
            yield pa.concat_tables(asked), tables.concat(said, _SAID_ROWS)


def aligned(requests: Path, completions: Path, steps: pa.Array) -> Aligned:
    """Lay the completions of a folder beside its requests; `steps` are keys that chains ask beside them."""
    n_shares = 1 + max(map(tables.count_rows, (requests, completions))) // BLOCK
    parts = _blocks_of(requests)
    keys = HashPartitions(_KEYS, n_shares, _keys_of(parts))
    replies = tables.from_parts(
        completions, COMPLETIONS, _SAID, partial(HashPartitions, _SAID_ROWS, n_shares)
    )
    said, places = Spool(_SAID_ROWS), [list[int]() for _ in parts]
    counts: Counter[str] = Counter(engine_error=0, missing=0, agreeing=0, disagreeing=0, unrequested=0)
    tried: set[str] = set()
    for share in range(n_shares):
        asked, replied = keys.of(share), replies.of(share)
        lookup = _Lookup.of(asked, replied)
        requested = replied.filter(pa.array(lookup.times > 0))
        counts.update(_ended(asked, requested))
        of_steps = replied["request_key"].filter(pc.is_in(replied["request_key"], steps))
        counts["unrequested"] += replied.num_rows - requested.num_rows - len(of_steps)
        tried.update(of_steps.to_pylist())
        for block, rows in lookup.by_block(np.asarray(asked["block"])):
            places[block].append(said.add(replied.take(rows)))
    return Aligned(parts, counts, frozenset(tried), said, places)


def _blocks_of(requests: Path) -> list[list[Path]]:
    """Parts of requests by block."""
    blocks, filled = list[list[Path]](), BLOCK
    for part in tables.parts(requests):
        if filled >= BLOCK:
            blocks.append([])
            filled = 0
        blocks[-1].append(part)
        filled += tables.count_part(part)
    return blocks


def _keys_of(blocks: Sequence[Sequence[Path]]) -> Iterator[pa.Table]:
    """The distinct keys of each part."""
    for number, parts in enumerate(blocks):
        for part in parts:
            rows = tables.read_part(part, REQUESTS, ("request_key", "status"))
            planned = pc.equal(rows["status"], PLANNED)
            found = pa.table({"request_key": rows["request_key"], "planned": planned})
            distinct = found.group_by("request_key").aggregate([("planned", "any")])
            block = pa.array(np.full(distinct.num_rows, number, np.int32))
            yield pa.table([distinct["request_key"], distinct["planned_any"], block], schema=_KEYS)


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Which blocks ask for each reply of a share."""

    times: np.ndarray  # blocks that ask for it, by reply
    first: np.ndarray  # of these, the place in `order`
    order: np.ndarray  # rows of keys, those of one key together

    @staticmethod
    def of(asked: pa.Table, replied: pa.Table) -> "_Lookup":
        known, wanted = number_keys(asked, replied)
        order = np.argsort(known, kind="stable")
        first, end = (np.searchsorted(known[order], wanted, side) for side in ("left", "right"))
        return _Lookup(end - first, first, order)

    def by_block(self, block: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """The replies of each block that has any, in the order they came; `block` is that of each key."""
        reply = np.repeat(np.arange(len(self.times)), self.times)
        before = np.repeat(np.cumsum(self.times) - self.times, self.times)
        asking = block[self.order[np.repeat(self.first, self.times) + np.arange(len(reply)) - before]]
        # parts of one block may share a key: each reply once a block
        pairs = np.unique(asking.astype(np.int64) * len(self.times) + reply)
        asking, reply = np.divmod(pairs, max(len(self.times), 1))
        for number in np.unique(asking):
            first, end = np.searchsorted(asking, [number, number + 1])
            yield int(number), reply[first:end]


def _ended(asked: pa.Table, completions: pa.Table) -> Counter[str]:
    """Count distinct planned requests by how they ended: a final status, `engine_error` or `missing`."""
    planned = pc.unique(asked.filter(asked["planned"])["request_key"])
    final = finals(completions)
    ended = Counter(final["status"].to_pylist())
    tried = len(pc.unique(completions["request_key"]))
    ended["engine_error"] = tried - final.num_rows
    ended["missing"] = len(planned) - tried
    twice = duplicates(completions)
    ended["agreeing"], ended["disagreeing"] = twice.agreeing, twice.disagreeing
    return ended
