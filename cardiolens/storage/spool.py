"""Tables in a temporary file without a name, so that memory does not grow with them."""

import os
from collections.abc import Iterator, Sequence
from tempfile import TemporaryFile, gettempdir
from typing import IO

import pyarrow as pa

from cardiolens.base.errors import RunError
from cardiolens.storage import tables

Extent = tuple[int, int]  # start and length


class UnlinkedFile:
    """A file that only this process writes; it is gone with the process, even after a kill.

    A pickled copy is read-only and works in processes of this user while this one lives.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] = TemporaryFile(prefix="cardiolens-")  # noqa: SIM115 - closed with this object
        self._end = 0

    def append(self, content: bytes | pa.Buffer) -> Extent:
        """Append bytes and return their place; RunError if they do not fit."""
        place = self._end, len(content)
        try:
            self._file.write(content)
            self._file.flush()
        except OSError as error:
            raise RunError(
                f"{gettempdir()}: what is judged and scored does not fit there ({error.strerror}); free "
                "space, or name another folder in TMPDIR, then run again"
            ) from error
        self._end += len(content)
        return place

    def read(self, place: Extent) -> bytes:
        """The bytes at a place."""
        start, length = place
        return os.pread(self._file.fileno(), length, start)

    def __del__(self) -> None:
        self._file.close()

    def __getstate__(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self._file.fileno()}"

    def __setstate__(self, path: str) -> None:
        self._file = open(path, "rb")  # noqa: SIM115 - closed with this object
        self._end = 0


_COMPRESSION = pa.ipc.IpcWriteOptions(compression="lz4")


class Spool:
    """Parts of a table in insertion order."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._file = UnlinkedFile()
        self._places: list[Extent] = []
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
        with pa.ipc.open_stream(self._file.read(self._places[number]), options=options) as reader:
            table: pa.Table = reader.read_all()
        return table if columns is None else table.select(list(columns))

    def parts(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Every part, one in memory at a time."""
        return (self.part(number, columns) for number in range(len(self._places)))

    def whole(self) -> pa.Table:
        """All rows in memory."""
        return tables.concat(self.parts(), self._schema).combine_chunks()
