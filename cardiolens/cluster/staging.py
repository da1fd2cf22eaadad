"""Copies of shards and weights on a node's own disk, where a job names a place for them.

Whatever does not fit there, or arrives damaged, is read from where it is.
"""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from cardiolens.digest import digest_of, digest_of_files, sha256_of

VARIABLE = "CARDIOLENS_STAGED"  # the folder of the copies, the same on every node; set by job scripts
_SPARE = 1 << 30  # bytes that stay free for what else a job writes there
_BLOB = re.compile(r"[0-9a-f]{64}")  # a hub's cache names large files by their SHA-256


class _DamagedError(Exception):
    """A copy is not what its source is recorded to be."""


@dataclass(frozen=True, slots=True)
class Needed:
    """Files of a folder that a job reads."""

    folder: Path
    names: tuple[str, ...]  # relative to it
    digest: str | None = None  # of those at its top, as digest_of_files gives it; None where none is recorded

    @property
    def size(self) -> int:
        """Bytes."""
        return sum((self.folder / name).stat().st_size for name in self.names)


def nearby(folder: Path) -> Path:
    """The copy of a folder on this node if there is one, else the folder itself."""
    root = os.environ.get(VARIABLE)
    if root is None:
        return folder
    copy = _copy_of(folder, Path(root))
    return copy if copy.is_dir() else folder


def stage(needed: Needed, root: Path) -> str:
    """Copy to a node's own disk, all or nothing; one line that says what was done, or why not."""
    copy = _copy_of(needed.folder, root)
    beside = copy.with_suffix(".tmp")
    try:
        size = needed.size
        root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(root).free
        if size + _SPARE > free:
            return _left(needed, f"{_gib(size)} do not fit into {root}, which has {_gib(free)} free")
        _copy(needed, beside)
        beside.rename(copy)
    except (OSError, _DamagedError) as error:
        shutil.rmtree(beside, ignore_errors=True)
        return _left(needed, getattr(error, "strerror", None) or str(error))
    return f"{needed.folder}: {len(needed.names)} files, {_gib(size)}, copied to {root}"


def _copy(needed: Needed, beside: Path) -> None:
    for name in needed.names:
        source, target = (needed.folder / name).resolve(), beside / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        if target.stat().st_size != source.stat().st_size or not _as_recorded(source, target):
            raise _DamagedError(f"{name} arrived damaged")
    if needed.digest is not None:
        at_top = [beside / name for name in needed.names if "/" not in name]
        if digest_of_files(at_top) != needed.digest:
            raise _DamagedError("the copy is not of the revision that was planned")


def _as_recorded(source: Path, target: Path) -> bool:
    if not _BLOB.fullmatch(source.name):
        return True
    return sha256_of(target) == source.name


def _copy_of(folder: Path, root: Path) -> Path:
    return root / digest_of(str(folder.resolve()))


def _left(needed: Needed, why: str) -> str:
    return f"{needed.folder}: read from where it is: {why}"


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
