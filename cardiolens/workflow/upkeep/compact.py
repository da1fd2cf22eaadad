"""Merge many small completion parts into few large ones, as shared file systems need.

A merged part is complete before its sources are deleted. A kill in between leaves duplicate rows, equal in
every column; the next compaction drops them. A process that finds its listed parts
gone lists them again (tables.read). Two compactions of one folder run one after the other, by a lock that a
kill releases.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cardiolens.base import disk
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Store
from cardiolens.workflow.upkeep.contents import stored_tables

PART_ROWS = 65_536
_LOCK = ".compact.lock"  # stays in the folder; whoever compacts holds its lock


@dataclass(frozen=True, slots=True)
class Compaction:
    """Outcome of compacting the completions of one model."""

    name: str
    parts_before: int
    parts_after: int
    rows: int
    repeated: int  # dropped duplicate rows, equal in every column


def compact(store: Store) -> Iterator[Compaction]:
    """Merge the completion parts of every model into parts of at most 65,536 rows."""
    for table in stored_tables(store):
        if table.schema is schemas.COMPLETIONS:
            yield compact_folder(table.name, table.folder)


def compact_folder(name: str, folder: Path) -> Compaction:
    """Merge the completion parts in the folder of one model, after any other compaction of it has ended."""
    with disk.locked(folder / _LOCK):
        before, rows, repeated = tables.parts(folder), 0, 0
        for group in _groups(before):
            parts = (tables.read_part(path, schemas.COMPLETIONS) for path in group)
            table = tables.concat(parts, schemas.COMPLETIONS)
            merged = _distinct(table)
            rows += merged.num_rows
            repeated += table.num_rows - merged.num_rows
            if len(group) > 1 or merged.num_rows < table.num_rows:
                tables.write_part(folder, merged, schemas.COMPLETIONS)
                for path in group:
                    disk.remove(path)
        return Compaction(name, len(before), len(tables.parts(folder)), rows, repeated)


def _groups(paths: list[Path]) -> Iterator[list[Path]]:
    """Group consecutive parts up to PART_ROWS rows; a larger part forms its own group."""
    group: list[Path] = []
    group_rows = 0
    for path in paths:
        n_rows = pq.read_metadata(path).num_rows
        if group and group_rows + n_rows > PART_ROWS:
            yield group
            group, group_rows = [], 0
        group.append(path)
        group_rows += n_rows
    if group:
        yield group


def _distinct(rows: pa.Table) -> pa.Table:
    """Return the rows in order, without duplicates that are equal in every column."""
    keys = rows["request_key"].to_pylist()
    counts, distinct, places = Counter(keys), set[str](), list[int]()
    for place, key in enumerate(keys):
        row = key if counts[key] == 1 else repr(rows.slice(place, 1).to_pylist())
        if row not in distinct:
            distinct.add(row)
            places.append(place)
    return rows if len(places) == rows.num_rows else rows.take(places)
