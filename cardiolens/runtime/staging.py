"""Copies of shards and weights on a node's local disk, in a folder that the job script names.

Files that do not fit there, or whose copies are damaged, are read from their original place.
"""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.digest import digest_of, digest_of_files, sha256_of

VARIABLE = "CARDIOLENS_STAGED"  # folder of the copies, same path on every node; set by job scripts
_SPARE = 1 << 30  # bytes kept free for other files of the job
_BLOB = re.compile(r"[0-9a-f]{64}")  # the hub cache names large files by their SHA-256


class _DamagedError(Exception):
    """A copy that differs from the recorded digest of its source."""


@dataclass(frozen=True, slots=True)
class Needed:
    """Files of a folder that a job reads."""

    folder: Path
    names: tuple[str, ...]  # paths relative to the folder
    digest: str | None = None  # digest_of_files of the folder's top-level files; None if unrecorded

    @property
    def size(self) -> int:
        """Total size in bytes."""
        return sum((self.folder / name).stat().st_size for name in self.names)


def nearby(folder: Path) -> Path:
    """Return the copy of a folder on this node if it exists, else the folder itself."""
    root = os.environ.get(VARIABLE)
    if root is None:
        return folder
    copy = _copy_of(folder, Path(root))
    return copy if copy.is_dir() else folder


def stage(needed: Needed, root: Path) -> str:
    """Copy files to a node's local disk, all or none; return a line about the outcome."""
    copy = _copy_of(needed.folder, root)
    temporary = copy.with_suffix(".tmp")
    try:
        size = needed.size
        root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(root).free
        if size + _SPARE > free:
            return _not_copied(needed, f"{_gib(size)} do not fit into {root}, which has {_gib(free)} free")
        _copy(needed, temporary)
        disk.rename(temporary, copy)
    except (OSError, _DamagedError) as error:
        disk.remove_tree(temporary)
        return _not_copied(needed, getattr(error, "strerror", None) or str(error))
    return f"{needed.folder}: {len(needed.names)} files, {_gib(size)}, copied to {root}"


def _copy(needed: Needed, temporary: Path) -> None:
    for name in needed.names:
        source, target = (needed.folder / name).resolve(), temporary / name
        target.parent.mkdir(parents=True, exist_ok=True)
        disk.copy_file(source, target)
        if target.stat().st_size != source.stat().st_size or not _is_intact(source, target):
            raise _DamagedError(f"{name} arrived damaged")
    if needed.digest is not None:
        at_top = [temporary / name for name in needed.names if "/" not in name]
        if digest_of_files(at_top) != needed.digest:
            raise _DamagedError("the copy is not of the revision that was planned")


def _is_intact(source: Path, target: Path) -> bool:
    """Return whether a copy matches the SHA-256 in its source's name; True if the name is no digest."""
    if not _BLOB.fullmatch(source.name):
        return True
    return sha256_of(target) == source.name


def _copy_of(folder: Path, root: Path) -> Path:
    return root / digest_of(str(folder.resolve()))


def _not_copied(needed: Needed, reason: str) -> str:
    return f"{needed.folder}: read from where it is: {reason}"


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
