"""The completions of a model beside the requests that they answer, a block of studies at a time.

Requests lie by study, completions in the order in which engines gave them. Both are first shared out by
their keys, so that each key is looked up among few, and completions then lie in the blocks that ask for them.
Memory does not grow with the number of requests.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens import tables
from cardiolens.judging.finals import duplicates, finals
from cardiolens.record.spool import Spool
from cardiolens.tables import COMPLETIONS, PLANNED, REQUESTS

BLOCK = 2**16  # requests from which a block is full; the rows of a share are about as many

_ASKED = ("arm_id", "qa_id", "option_keys", "status", "request_key")
_SAID = ("request_key", "status", "text", "finish_reason", "option_logprobs", "written_at")
_SAID_ROWS = pa.schema([COMPLETIONS.field(name) for name in _SAID])
_KEYS = pa.schema([("request_key", pa.string()), ("planned", pa.bool_()), ("block", pa.int32())])
_PREFIX = 3  # characters of a key that choose its share: 4,096 of a hash


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
    parts, keys = _keys_by_share(requests, n_shares)
    replies = tables.made_of(completions, COMPLETIONS, _SAID, lambda parts: _shared(parts, n_shares))
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


def _keys_by_share(requests: Path, n_shares: int) -> tuple[list[list[Path]], "_Shares"]:
    """Parts of requests by block, and the distinct keys of each block."""
    keys, blocks = _Shares(_KEYS, n_shares), list[list[Path]]()
    filled = BLOCK
    for part in tables.parts(requests):
        rows = tables.read_part(part, REQUESTS, ("request_key", "status"))
        if filled >= BLOCK:
            blocks.append([])
            filled = 0
        blocks[-1].append(part)
        filled += rows.num_rows
        planned = pc.equal(rows["status"], PLANNED)
        found = pa.table({"request_key": rows["request_key"], "planned": planned})
        distinct = found.group_by("request_key").aggregate([("planned", "any")])
        number = pa.array(np.full(distinct.num_rows, len(blocks) - 1, np.int32))
        columns = distinct["request_key"], distinct["planned_any"], number
        keys.add(pa.table(list(columns), schema=_KEYS))
    keys.flush()
    return blocks, keys


def _shared(parts: Iterator[pa.Table], n_shares: int) -> "_Shares":
    found = _Shares(_SAID_ROWS, n_shares)
    for part in parts:
        found.add(part)
    found.flush()
    return found


class _Shares:
    """Rows of a table by a share of the keys; rows of one key stand in one share, in the order they came."""

    def __init__(self, schema: pa.Schema, n_shares: int) -> None:
        self._schema = schema
        self._spool = Spool(schema)
        self._places: list[list[int]] = [[] for _ in range(n_shares)]
        self._waiting: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        """Append rows; they are shared out when there are many."""
        self._waiting.append(rows)
        if sum(some.num_rows for some in self._waiting) >= BLOCK:
            self.flush()

    def flush(self) -> None:
        """Share out what waits."""
        if not self._waiting:
            return
        rows, self._waiting = pa.concat_tables(self._waiting), []
        share = _share_of(rows["request_key"], len(self._places))
        order = np.argsort(share, kind="stable")
        ends = np.searchsorted(share[order], np.arange(len(self._places) + 1))
        for places, first, end in zip(self._places, ends[:-1], ends[1:], strict=True):
            if end > first:
                places.append(self._spool.add(rows.take(order[first:end])))

    def of(self, share: int) -> pa.Table:
        """The rows of one share."""
        return tables.concat(map(self._spool.part, self._places[share]), self._schema)


def _share_of(keys: pa.ChunkedArray, n_shares: int) -> np.ndarray:
    """The share of each key, by its first characters alone: those of a hash are as good as drawn."""
    first = pc.fill_null(pc.utf8_slice_codeunits(keys, 0, _PREFIX), "")
    encoded = first.combine_chunks().dictionary_encode()
    shares = [crc32(prefix.encode()) % n_shares for prefix in encoded.dictionary.to_pylist()]
    return np.array(shares, np.int64)[np.asarray(encoded.indices)]


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Which blocks ask for each reply of a share."""

    times: np.ndarray  # blocks that ask for it, by reply
    first: np.ndarray  # of these, the place in `order`
    order: np.ndarray  # rows of keys, those of one key together

    @staticmethod
    def of(asked: pa.Table, replied: pa.Table) -> "_Lookup":
        keys = pa.chunked_array([*asked["request_key"].chunks, *replied["request_key"].chunks], pa.string())
        code = np.asarray(pc.fill_null(keys, "").combine_chunks().dictionary_encode().indices)
        known, wanted = code[: asked.num_rows], code[asked.num_rows :]
        order = np.argsort(known, kind="stable")
        first, end = (np.searchsorted(known[order], wanted, side) for side in ("left", "right"))
        return _Lookup(end - first, first, order)

    def by_block(self, block: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """The replies of each block that has any, in the order they came; `block` is that of each key."""
        reply = np.repeat(np.arange(len(self.times)), self.times)
        before = np.repeat(np.cumsum(self.times) - self.times, self.times)
        asking = block[self.order[np.repeat(self.first, self.times) + np.arange(len(reply)) - before]]
        order = np.argsort(asking, kind="stable")
        for number in np.unique(asking):
            first, end = np.searchsorted(asking[order], [number, number + 1])
            yield int(number), reply[order[first:end]]


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
