"""Rows of a table by a share of their keys, so that what is too many for memory is joined share by share."""

from collections.abc import Iterable
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.storage import tables
from cardiolens.storage.spool import Spool

AT_ONCE = 2**16  # rows that are shared out together; so many fill a share
_PREFIX = 3  # characters of a key that choose its share: 4,096 of a hash


class HashPartitions:
    """Rows by a share of their `request_key`; those of one key stand in one share, in the order they came."""

    def __init__(self, schema: pa.Schema, n_shares: int, rows: Iterable[pa.Table]) -> None:
        self._schema = schema
        self._spool = Spool(schema)
        self._places: list[list[int]] = [[] for _ in range(n_shares)]
        waiting: list[pa.Table] = []
        for block in rows:
            waiting.append(block)
            if sum(table.num_rows for table in waiting) >= AT_ONCE:
                self._share_out(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            self._share_out(pa.concat_tables(waiting))

    def of(self, share: int) -> pa.Table:
        """The rows of one share."""
        return tables.concat(map(self._spool.part, self._places[share]), self._schema)

    def _share_out(self, rows: pa.Table) -> None:
        share = _share_of(rows["request_key"], len(self._places))
        order = np.argsort(share, kind="stable")
        ends = np.searchsorted(share[order], np.arange(len(self._places) + 1))
        for places, first, end in zip(self._places, ends[:-1], ends[1:], strict=True):
            if end > first:
                places.append(self._spool.add(rows.take(order[first:end])))


def number_keys(first: pa.Table, second: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """A number for the key of each row of two tables: equal for equal keys."""
    keys = pa.chunked_array([*first["request_key"].chunks, *second["request_key"].chunks], pa.string())
    number = np.asarray(pc.fill_null(keys, "").combine_chunks().dictionary_encode().indices)
    return number[: first.num_rows], number[first.num_rows :]


def _share_of(keys: pa.ChunkedArray, n_shares: int) -> np.ndarray:
    """The share of each key, by its first characters alone: those of a hash are as good as drawn."""
    prefixes = pc.fill_null(pc.utf8_slice_codeunits(keys, 0, _PREFIX), "")
    encoded = prefixes.combine_chunks().dictionary_encode()
    shares = [crc32(prefix.encode()) % n_shares for prefix in encoded.dictionary.to_pylist()]
    numbers: np.ndarray = np.array(shares, np.int64)[np.asarray(encoded.indices)]
    return numbers
