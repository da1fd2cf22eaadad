"""Hash partitions of a table by request key, for joins of tables that do not fit in memory."""

from collections.abc import Iterable
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.storage import tables
from cardiolens.storage.spool import Spool

AT_ONCE = 2**16  # rows that are distributed together, and rows that fill a partition
_PREFIX = 3  # characters of a key that choose its partition: 4,096 values of a hex digest


class HashPartitions:
    """Rows partitioned by `request_key`: equal keys share a partition, rows keep their order."""

    def __init__(self, schema: pa.Schema, n_partitions: int, rows: Iterable[pa.Table]) -> None:
        self._schema = schema
        self._spool = Spool(schema)
        self._places: list[list[int]] = [[] for _ in range(n_partitions)]
        waiting: list[pa.Table] = []
        for block in rows:
            waiting.append(block)
            if sum(table.num_rows for table in waiting) >= AT_ONCE:
                self._distribute(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            self._distribute(pa.concat_tables(waiting))

    def of(self, number: int) -> pa.Table:
        """The rows of one partition."""
        return tables.concat(map(self._spool.part, self._places[number]), self._schema)

    def _distribute(self, rows: pa.Table) -> None:
        partition = _partition_of(rows["request_key"], len(self._places))
        order = np.argsort(partition, kind="stable")
        ends = np.searchsorted(partition[order], np.arange(len(self._places) + 1))
        for places, first, end in zip(self._places, ends[:-1], ends[1:], strict=True):
            if end > first:
                places.append(self._spool.add(rows.take(order[first:end])))


def number_keys(first: pa.Table, second: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Integer codes for the keys of two tables, row by row; equal keys have equal codes."""
    keys = pa.chunked_array([*first["request_key"].chunks, *second["request_key"].chunks], pa.string())
    number = np.asarray(pc.fill_null(keys, "").combine_chunks().dictionary_encode().indices)
    return number[: first.num_rows], number[first.num_rows :]


def _partition_of(keys: pa.ChunkedArray, n_partitions: int) -> np.ndarray:
    """Partition of each key, from its first characters, which are uniform for a hash."""
    prefixes = pc.fill_null(pc.utf8_slice_codeunits(keys, 0, _PREFIX), "")
    encoded = prefixes.combine_chunks().dictionary_encode()
    partitions = [crc32(prefix.encode()) % n_partitions for prefix in encoded.dictionary.to_pylist()]
    numbers: np.ndarray = np.array(partitions, np.int64)[np.asarray(encoded.indices)]
    return numbers
