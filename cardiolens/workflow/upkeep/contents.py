"""Contents of a store: tables and sizes, faults, and files that no command reads any more."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cardiolens.base.errors import InputError
from cardiolens.protocol.select.feature_store import FEATURES
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Store
from cardiolens.study.cohort import COHORT_NAME, read_cohort
from cardiolens.study.shards import FRAMES_FOLDER, VOLUMES_FOLDER, holds_part, pixel_digest


@dataclass(frozen=True, slots=True)
class StoredTable:
    """One table of a store."""

    name: str  # e.g. completions/<model_key>
    folder: Path
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Content:
    """Size of one table."""

    name: str
    parts: int
    rows: int
    n_bytes: int
    versions: tuple[str, ...]  # schema versions of the parts
    broken: tuple[Path, ...]  # parts with an unreadable footer


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
        rows, n_bytes, versions, broken = 0, 0, set(), []
        paths = tables.parts(table.folder)
        for path in paths:
            n_bytes += path.stat().st_size
            try:
                metadata = pq.read_metadata(path)
            except tables.UNREADABLE:
                broken.append(path)
                continue
            rows += metadata.num_rows
            versions.add((metadata.schema.to_arrow_schema().metadata or {}).get(b"version", b"?").decode())
        yield Content(table.name, len(paths), rows, n_bytes, tuple(sorted(versions)), tuple(broken))


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
    columns = (frames[name].to_pylist() for name in ("study_id", "volume_id", "idx", "digest"))
    shapes = zip(*(frames[name].to_pylist() for name in ("height", "width", "channels")), strict=True)
    for place, pixels, shape in zip(zip(*columns, strict=True), frames["pixels"], shapes, strict=True):
        study_id, volume_id, idx, digest = place
        if pixel_digest(pixels.as_buffer(), *shape) != digest:
            yield (
                f"{path}: {study_id} {volume_id} frame {idx}: its pixels have changed since preparation; "
                "delete the part, and prepare again"
            )


_SETTLING_SECONDS = 24 * 3600.0  # newer files may belong to a running writer


@dataclass(frozen=True, slots=True)
class Removable:
    """A file that may be deleted, and why."""

    path: Path
    n_bytes: int
    reason: str


def removable(store: Store, models: Sequence[str] = ()) -> list[Removable]:
    """List files that no command reads, and all completions of the named models; delete nothing.

    `models` are model keys; InputError for a key without completions in the store.
    """
    model_keys = [table.folder.name for table in stored_tables(store) if table.schema is schemas.COMPLETIONS]
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
    return [Removable(path, path.stat().st_size, reason) for path, reason in reasons.items()]


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
