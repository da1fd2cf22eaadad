"""Maintain a store: its contents, faults, files that no command reads any more, and small parts merged.

A merged part is complete before its sources are deleted. A kill in between leaves duplicate rows, equal in
every column; the next compaction drops them. A process that finds its listed parts gone lists them again
(tables.read). Two compactions of one folder run one after the other, by a lock that a kill releases.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.protocol.select.feature_store import FEATURES
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Store
from cardiolens.study.cohort import COHORT_NAME, read_cohort
from cardiolens.study.shards import FRAMES_FOLDER, VOLUMES_FOLDER, holds_part, pixel_digest

PART_ROWS = 65_536
_LOCK = ".compact.lock"  # stays in the folder; whoever compacts holds its lock
_SETTLING_SECONDS = 24 * 3600.0  # newer files may belong to a running writer


class StoredTable(NamedTuple):
    """One table of a store."""

    name: str  # e.g. completions/<model_key>
    folder: Path
    schema: pa.Schema


class Content(NamedTuple):
    """Size of one table."""

    name: str
    parts: int
    rows: int
    n_bytes: int
    versions: tuple[str, ...]  # schema versions of the parts
    broken: int  # parts with an unreadable footer


def stored_tables(store: Store) -> list[StoredTable]:
    """Return every table of a store; InputError if the folder is not a store."""
    candidates = [
        StoredTable(FRAMES_FOLDER, store.root / FRAMES_FOLDER, schemas.FRAMES),
        StoredTable(VOLUMES_FOLDER, store.root / VOLUMES_FOLDER, schemas.VOLUMES),
        StoredTable("questions", store.questions, schemas.QUESTIONS),
        StoredTable("evidence", store.evidence, schemas.EVIDENCE),
    ]
    existing = [table for table in candidates if table.folder.is_dir()]
    if not existing and not (store.root / COHORT_NAME).exists():
        raise InputError(
            f"store={store.root}: is not a store (no {COHORT_NAME}, frames, volumes or questions); "
            "give the folder that a sweep's `store` names, e.g. stores/phantom_ci"
        )
    for group, schema in (("features", FEATURES), ("completions", schemas.COMPLETIONS)):
        folders = sorted(path for path in (store.root / group).glob("*") if path.is_dir())
        existing += [StoredTable(f"{group}/{folder.name}", folder, schema) for folder in folders]
    return existing


def contents(store: Store) -> Iterator[Content]:
    """Yield the size of every table of a store."""
    for table in stored_tables(store):
        rows, n_bytes, broken, versions = 0, 0, 0, set[str]()
        paths = tables.parts(table.folder)
        for path in paths:
            n_bytes += path.stat().st_size
            try:
                metadata = pq.read_metadata(path)
            except tables.UNREADABLE:
                broken += 1
                continue
            rows += metadata.num_rows
            versions.add((metadata.schema.to_arrow_schema().metadata or {}).get(b"version", b"?").decode())
        yield Content(table.name, len(paths), rows, n_bytes, tuple(sorted(versions)), broken)


def problems(store: Store) -> Iterator[str]:
    """Yield one sentence per fault of a store, none if it is intact. Memory: one row group."""
    for table in stored_tables(store):
        for path in tables.parts(table.folder):
            yield from _part_problems(table, path)
    cohort = read_cohort(store.root)
    for study_id, record in cohort.studies.items() if cohort is not None else ():
        if not holds_part(store.root, record):
            yield f"{study_id}: its part {record.part} is not there; prepare again"


def _part_problems(table: StoredTable, path: Path) -> Iterator[str]:
    try:
        with tables.open_part(path) as part:
            if not part.schema_arrow.equals(table.schema):
                yield f"{path}: its columns are not those of table {table.name}; move it out of the store"
                return
            for group in range(part.num_row_groups):
                rows = part.read_row_group(group)
                yield from _changed_pixels(path, rows) if table.name == FRAMES_FOLDER else ()
    except tables.UNREADABLE as error:
        reason = str(error).splitlines()[0]
        yield f"{path}: not a whole Parquet file ({reason}); delete it, and run the same command again"


def _changed_pixels(path: Path, frames: pa.Table) -> Iterator[str]:
    for row in frames.to_pylist():
        if pixel_digest(row["pixels"], row["height"], row["width"], row["channels"]) != row["digest"]:
            yield (
                f"{path}: {row['study_id']} {row['volume_id']} frame {row['idx']}: its pixels have changed "
                "since preparation; delete the part, and prepare again"
            )


def removable(store: Store, models: Sequence[str] = ()) -> dict[Path, str]:
    """Return files that no command reads, and all completions of the named models, each with the reason.

    `models` are model keys; InputError for a key without completions in the store.
    """
    model_keys = [table.folder.name for table in _completions(store)]
    if unknown := sorted(set(models) - set(model_keys)):
        raise InputError(
            f"models: {unknown[0]!r} has no completions in {store.root}; choose from "
            f"{', '.join(model_keys) or 'none: there are no completions'}"
        )
    unfinished = (path for path in sorted(store.root.rglob(".*.tmp")) if path.is_file() and _is_settled(path))
    reasons = dict.fromkeys(unfinished, "left by a writer that was killed")
    reasons |= dict.fromkeys(_superseded(store), "its studies were prepared again, or left the dataset")
    for key in models:
        paths = tables.parts(store.completions(key))
        reasons |= dict.fromkeys(paths, f"completions of {key}, which you named")
    return reasons


def _superseded(store: Store) -> Iterator[Path]:
    """Yield parts without a study of the current cohort, and their features."""
    cohort = read_cohort(store.root)
    if cohort is None:
        return
    current = {record.part for record in cohort.studies.values()}
    for table in stored_tables(store):
        if table.name.partition("/")[0] in ("frames", "volumes", "features"):
            for path in tables.parts(table.folder):
                if path.name not in current and _is_settled(path):
                    yield path


def _is_settled(path: Path) -> bool:
    return time.time() - path.stat().st_mtime > _SETTLING_SECONDS


class Compaction(NamedTuple):
    """Outcome of compacting the completions of one model."""

    name: str
    parts_before: int
    parts_after: int
    rows: int
    repeated: int  # dropped duplicate rows, equal in every column

    def __str__(self) -> str:
        parts = f"{self.parts_before} parts became {self.parts_after}"
        dropped = f", {self.repeated} repeated rows dropped" if self.repeated else ""
        return f"{self.name}: {parts}, {self.rows:,} rows{dropped}"


def compact(store: Store) -> Iterator[Compaction]:
    """Merge the completion parts of every model into parts of at most 65,536 rows."""
    for table in _completions(store):
        yield compact_folder(table.name, table.folder)


def _completions(store: Store) -> list[StoredTable]:
    return [table for table in stored_tables(store) if table.schema is schemas.COMPLETIONS]


def compact_folder(name: str, folder: Path) -> Compaction:
    """Merge the completion parts in the folder of one model, after any other compaction of it has ended."""
    with disk.locked(folder / _LOCK):
        before, rows, repeated = tables.parts(folder), 0, 0
        keys = tables.read(folder, schemas.COMPLETIONS, ("request_key",))["request_key"]
        counts, seen = Counter(keys.to_pylist()), set[str]()
        for group in tables.grouped(before, lambda path: pq.read_metadata(path).num_rows, PART_ROWS):
            parts = (tables.read_part(path, schemas.COMPLETIONS) for path in group)
            table = tables.concat(parts, schemas.COMPLETIONS)
            merged = _distinct(table, counts, seen)
            rows += merged.num_rows
            repeated += table.num_rows - merged.num_rows
            if len(group) > 1 or merged.num_rows < table.num_rows:
                if merged.num_rows:
                    tables.write_part(folder, merged, schemas.COMPLETIONS)
                for path in group:
                    disk.remove(path)
        return Compaction(name, len(before), len(tables.parts(folder)), rows, repeated)


def _distinct(rows: pa.Table, counts: Counter[str], seen: set[str]) -> pa.Table:
    """Return the rows in order, without those in `seen`; `counts` are the rows of each key in all parts."""
    places = list[int]()
    for place, key in enumerate(rows["request_key"].to_pylist()):
        row = "" if counts[key] == 1 else repr(rows.slice(place, 1).to_pylist())
        if not row or row not in seen:
            seen.add(row)
            places.append(place)
    return rows if len(places) == rows.num_rows else rows.take(pa.array(places, pa.int64()))
