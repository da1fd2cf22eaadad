"""Verify a store: read every part, recompute all pixel digests, look up every referenced part."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from cardiolens.storage import tables
from cardiolens.storage.places import Store
from cardiolens.study.cohort import read_cohort
from cardiolens.study.shards import FRAMES_FOLDER, holds_part, pixel_digest
from cardiolens.workflow.upkeep.contents import StoredTable, stored_tables


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
