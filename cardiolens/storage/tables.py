"""Tables on disk: folders of Parquet part files, each written atomically, and reading them back.

Every step of the flow reads and writes these tables and nothing else. A table is a folder of Parquet part
files. Parts are written atomically: under a temporary name, fsynced, then renamed.
"""

import errno
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.storage.schemas import SCHEMA_VERSION

Item = TypeVar("Item")
Result = TypeVar("Result")

# Errors of pyarrow for a truncated or changed file, whose sizes it trusts before it checks them.
UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError, MemoryError)

_ROW_GROUP = 2**16  # rows from which blocks are written as a row group
_ONLY_PART = "part-00000.parquet"


def from_rows(rows: Sequence[dict[str, object]], schema: pa.Schema) -> pa.Table:
    """A table of the schema from rows; a missing column is null, an unknown one a programming error."""
    assert all(set(row) <= set(schema.names) for row in rows), "row with a column outside its schema"
    return pa.Table.from_pylist(list(rows), schema=schema)


def part_name() -> str:
    """A part file name that sorts by time and cannot collide between writers."""
    return f"part-{time.time_ns():020d}-{secrets.token_hex(4)}.parquet"


def write_part(folder: Path, table: pa.Table, schema: pa.Schema, name: str | None = None) -> Path:
    """Write a table, cast to the schema, as one part of a folder; returns the path of the part."""
    path = folder / (name or part_name())
    with disk.atomic(path) as temporary:
        pq.write_table(table.cast(schema), temporary, compression="zstd", write_page_checksum=True)
    return path


def replace(folder: Path, blocks: pa.Table | Iterable[pa.Table], schema: pa.Schema) -> None:
    """Replace the content of a folder by one part: a table, or blocks that are not all in memory at once.

    The part has always the same name, so that of two processes which replace at once the later one counts.
    """
    only, old = folder / _ONLY_PART, parts(folder)
    with (
        disk.atomic(only) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for rows in _row_groups([blocks] if isinstance(blocks, pa.Table) else blocks, schema):
            writer.write_table(rows)
    for path in old:
        if path != only:
            disk.remove(path)


def _row_groups(blocks: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """Cast blocks to a schema and concatenate small ones."""
    waiting = [schema.empty_table()]
    for block in blocks:
        waiting.append(block.cast(schema))
        if sum(table.num_rows for table in waiting) >= _ROW_GROUP:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def grouped(items: Iterable[Item], size_of: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """Divide items, in order, into groups of at most `most` in size; a larger item is a group of its own."""
    group, size = list[Item](), 0
    for item in items:
        own = size_of(item)
        if group and size + own > most:
            yield group
            group, size = [], 0
        group.append(item)
        size += own
    if group:
        yield group


def parts(folder: Path) -> list[Path]:
    """The part files of a table in name order; empty if the folder does not exist."""
    return sorted(folder.glob("part-*.parquet"))


def read(folder: Path, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """Read all parts of a table, or some of its columns; an empty table if there are no parts."""
    selected = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    return from_parts(folder, schema, columns, lambda parts: concat(parts, selected))


def from_parts(
    folder: Path,
    schema: pa.Schema,
    columns: Sequence[str] | None,
    make: Callable[[Iterator[pa.Table]], Result],
) -> Result:
    """Return `make(parts)` for an iterator over the parts of a table; started again if one disappears."""
    return _of_parts(folder, lambda paths: make(read_part(path, schema, columns) for path in paths))


def _of_parts(folder: Path, make: Callable[[list[Path]], Result]) -> Result:
    """Return `make(paths)`; again if a part disappears because another process compacts the folder."""
    while True:  # each further listing has lost a part
        paths = parts(folder)
        try:
            return make(paths)
        except InputError as error:
            if not isinstance(error.__cause__, FileNotFoundError) or set(paths) <= set(parts(folder)):
                raise


def open_part(path: Path) -> pq.ParquetFile:
    """Open a part; reading a page that changed on disk raises OSError.

    OSError also for anything but a regular file: opening a pipe would block.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    return pq.ParquetFile(path, page_checksum_verification=True)


@contextmanager
def _whole_part(path: Path, schema: pa.Schema) -> Iterator[pq.ParquetFile]:
    """Open a part; InputError if it has other columns, or if it or what is read is not whole."""
    try:
        with open_part(path) as part:
            check_columns(path, part.schema_arrow, schema)
            yield part
    except UNREADABLE as error:
        raise InputError(f"{path}: not a whole Parquet file ({error}); delete it and run again") from error


def read_part(path: Path, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """Read one part file; InputError unless it is whole and has the columns of the schema."""
    with _whole_part(path, schema) as part:
        table = part.read(columns=None if columns is None else list(columns))
        table.validate(full=True)  # text that is no UTF-8 would fail much later
        return table if columns is None else table.select(list(columns))


def scan(
    folder: Path,
    schema: pa.Schema,
    columns: Sequence[str],
    where: ds.Expression | None = None,
    *,
    encoded: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that match a filter, a batch at a time; memory does not grow with the table.

    Row groups are not read where their statistics rule the filter out. Columns in `encoded` come as
    dictionaries, as a part holds them. InputError as for `read_part`.
    """
    return _batches(parts(folder), schema, columns, where, encoded)


def _batches(
    paths: Iterable[Path],
    schema: pa.Schema,
    columns: Sequence[str],
    where: ds.Expression | None,
    encoded: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    form = ds.ParquetFileFormat(
        read_options=ds.ParquetReadOptions(dictionary_columns=list(encoded)),
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True),
    )
    for path in paths:
        with _whole_part(path, schema):
            batches = form.make_fragment(str(path), LocalFileSystem()).to_batches(
                columns=list(columns), filter=where, batch_readahead=4
            )
            for batch in batches:
                batch.validate(full=True)
                yield batch


def query(folder: Path, schema: pa.Schema, columns: Sequence[str], where: ds.Expression) -> pa.Table:
    """Read the rows that match a filter, as `scan` does; started again if a part disappears."""
    selected = pa.schema([schema.field(name) for name in columns])

    def of(paths: list[Path]) -> pa.Table:
        return pa.Table.from_batches(_batches(paths, schema, columns, where), selected.remove_metadata())

    return _of_parts(folder, of)


def check_columns(path: Path, actual: pa.Schema, schema: pa.Schema) -> None:
    """Raise InputError unless a part has the columns of the schema."""
    if not actual.equals(schema):
        raise InputError(
            f"{path}: its columns are not those of table {schema.metadata[b'table'].decode()!r} "
            f"version {SCHEMA_VERSION}; another version of CardioLens wrote it: use a new store"
        )


def concat(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """Concatenate tables of one schema; an empty table if there are none."""
    tables = list(tables)
    return pa.concat_tables(tables) if tables else schema.empty_table()
