"""Find and delete files that no command reads any more, and completions that the user names."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Store
from cardiolens.study.cohort import read_cohort
from cardiolens.workflow.upkeep.contents import stored_tables

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
    pairs = [*_leftovers(store), *_superseded(store), *_completions(store, models)]
    return [Removable(path, path.stat().st_size, reason) for path, reason in pairs]


def delete(files: Sequence[Removable]) -> None:
    """Delete files; a missing file is no error."""
    for file in files:
        disk.remove(file.path)


def _leftovers(store: Store) -> Iterator[tuple[Path, str]]:
    """Yield temporary files of killed writers."""
    for path in sorted(store.root.rglob(".*.tmp")):
        if path.is_file() and _is_settled(path):
            yield path, "left by a writer that was killed"


def _superseded(store: Store) -> Iterator[tuple[Path, str]]:
    """Yield parts without a study of the current cohort, and their features."""
    cohort = read_cohort(store.root)
    if cohort is None:
        return
    current = {record.part for record in cohort.studies.values()}
    for table in stored_tables(store):
        if table.name.partition("/")[0] in ("frames", "volumes", "features"):
            for path in tables.parts(table.folder):
                if path.name not in current and _is_settled(path):
                    yield path, "its studies were prepared again, or left the dataset"


def _completions(store: Store, models: Sequence[str]) -> Iterator[tuple[Path, str]]:
    model_keys = [table.folder.name for table in stored_tables(store) if table.schema is schemas.COMPLETIONS]
    if unknown := sorted(set(models) - set(model_keys)):
        raise InputError(
            f"models: {unknown[0]!r} has no completions in {store.root}; choose from "
            f"{', '.join(model_keys) or 'none: there are no completions'}"
        )
    for model_key in models:
        for path in tables.parts(store.completions(model_key)):
            yield path, f"completions of {model_key}, which you named"


def _is_settled(path: Path) -> bool:
    return time.time() - path.stat().st_mtime > _SETTLING_SECONDS
