"""Tables in an unlinked temporary file, so that memory does not grow with them; hash partitions."""

import os
import weakref
from collections.abc import Iterable, Iterator, Sequence
from tempfile import gettempdir, mkstemp
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import RunError
from cardiolens.storage import tables

Place = tuple[int, int]  # start and length


class UnlinkedFile:
    """A file that only this process writes; it is gone with the process, even after a kill.

    A pickled copy is read-only and works in processes of this user while this one lives.
    """

    def __init__(self) -> None:
        self._file, path = mkstemp(prefix="cardiolens-")
        os.unlink(path)
        weakref.finalize(self, os.close, self._file)
        self._end = 0

    def append(self, content: memoryview | bytes | pa.Buffer) -> Place:
        """Append bytes and return their place; RunError if they do not fit."""
        remaining = memoryview(content)
        place = self._end, len(remaining)
        try:
            while remaining:
                n_written = os.pwrite(self._file, remaining, self._end)
                remaining, self._end = remaining[n_written:], self._end + n_written
        except OSError as error:
            raise RunError(
                f"{gettempdir()}: what is judged and scored does not fit there ({error.strerror}); free "
                "space, or name another folder in TMPDIR, then run again"
            ) from error
        return place

    def __getstate__(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self._file}"

    def __setstate__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)
        self._end = 0

    def read(self, place: Place) -> bytearray:
        """The bytes at a place."""
        start, length = place
        content = bytearray(length)
        view, at = memoryview(content), 0
        while at < length:
            at += os.preadv(self._file, [view[at:]], start + at)
        return content


_COMPRESSION = pa.ipc.IpcWriteOptions(compression="lz4")


class Spool:
    """Parts of a table in insertion order."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._file = UnlinkedFile()
        self._places: list[Place] = []
        self.num_rows = 0

    def add(self, part: pa.Table) -> int:
        """Append a part and return its number."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._schema, options=_COMPRESSION) as writer:
            writer.write_table(part.combine_chunks())
        self._places.append(self._file.append(sink.getvalue()))
        self.num_rows += part.num_rows
        return len(self._places) - 1

    def part(self, number: int, columns: Sequence[str] | None = None) -> pa.Table:
        """One part, or some of its columns."""
        fields = None if columns is None else [self._schema.get_field_index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        content = pa.py_buffer(self._file.read(self._places[number]))
        with pa.ipc.open_stream(content, options=options) as reader:
            table: pa.Table = reader.read_all()
        return table if columns is None else table.select(list(columns))

    def parts(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Every part, one in memory at a time."""
        return (self.part(number, columns) for number in range(len(self._places)))

    def whole(self) -> pa.Table:
        """All rows in memory."""
        return tables.concat(self.parts(), self._schema).combine_chunks()


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
