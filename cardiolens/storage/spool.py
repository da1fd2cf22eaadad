"""A table in an unlinked temporary file, so that memory does not grow with its rows."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from cardiolens.storage import tables
from cardiolens.storage.unnamed_file import Place, UnlinkedFile

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
