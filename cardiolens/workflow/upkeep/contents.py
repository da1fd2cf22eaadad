"""List the tables of a store with parts, rows and bytes; reads only the footers of parts."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cardiolens.base.errors import InputError
from cardiolens.protocol.select.feature_store import FEATURES
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Store
from cardiolens.study.cohort import COHORT_NAME
from cardiolens.study.shards import FRAMES_FOLDER, VOLUMES_FOLDER


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
        existing += [
            StoredTable(f"{group}/{folder.name}", folder, schema) for folder in _folders(store.root / group)
        ]
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


def _folders(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
