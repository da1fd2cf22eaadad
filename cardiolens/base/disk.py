"""The one seam through which CardioLens changes the disk.

Every file, rename, removal, fsync and lock passes here, so that `bench/faults.py` can count these events
and kill the process, fill the disk, or fail once at each. `tests/unit/test_architecture.py` forbids
other ways.
"""

import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from cardiolens.base.errors import RunError

Hook = Callable[[str, Path], None]
"""Called with the kind of an event and its path just before it happens; what it raises, the event raises."""

hooks: list[Hook] = []  # of fault injection; empty in use


class NotWrittenError(RunError, OSError):
    """A change of the disk that failed: an OSError for callers, and one sentence for users."""

    def __str__(self) -> str:
        return str(self.args[0])


def _event(kind: str, path: Path) -> None:
    for hook in hooks:
        hook(kind, path)


@contextmanager
def _changing(kind: str, path: Path) -> Iterator[None]:
    """Announce an event and do it; NotWrittenError if it fails, other than at a lock that another holds."""
    try:
        _event(kind, path)
        yield
    except (BlockingIOError, NotWrittenError):
        raise
    except OSError as error:
        reason = error.strerror or error
        failed = NotWrittenError(
            f"{path}: cannot be written ({reason}); free space or check permissions, then run again"
        )
        failed.errno, failed.strerror = error.errno, error.strerror
        raise failed from error


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; on success it is fsynced and renamed to `path`.

    RunError if the file cannot be written.
    """
    temporary = _temporary(path)
    try:
        with _changing("folder", path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with _changing("write", path):
            yield temporary
            sync(temporary)
        rename(temporary, path)
    finally:
        with suppress(OSError):  # a file stands where the folder should; nothing was written there
            temporary.unlink(missing_ok=True)


@contextmanager
def draft_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder beside `path` that takes its name on success and is removed on failure.

    After a kill the draft stays, under a hidden name that ends in `.draft`, and the next draft of the same
    folder removes it. An empty folder at `path` is replaced. RunError if the disk fails.
    """
    draft = path.with_name(f".{path.name}.draft")
    remove_tree(draft)
    try:
        with _changing("folder", path):
            draft.mkdir(parents=True)
            yield draft
            for place in (*draft.rglob("*"), draft):
                sync(place)
            rename(draft, path)  # replaces an empty folder, and fails at one that holds anything
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    write_bytes(path, text.encode("utf-8", "surrogatepass"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    with atomic(path) as temporary:
        temporary.write_bytes(content)


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically that only its owner can read, whatever the umask and the file before it."""
    with atomic(path) as temporary:
        temporary.touch(0o600)
        temporary.write_bytes(content)


def write_draft(path: Path, content: bytes) -> None:
    """Write a file of a draft folder, and make its parents; the draft's rename makes it durable."""
    _event("write", path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def open_text(path: Path) -> TextIO:
    """Open a text file of a draft for writing line by line, in UTF-8 with the line ends that are written."""
    _event("write", path)
    return path.open("w", encoding="utf-8", newline="")


def create(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read; FileExistsError if it exists, OSError if it fails.

    A reader never sees a part of it: the file gets its name when it is whole.
    """
    temporary = _temporary(path)
    try:
        _event("write", path)
        temporary.touch(0o600)
        temporary.write_bytes(content)
        sync(temporary)
        _event("link", path)
        os.link(temporary, path)  # fails where the file exists, unlike a rename
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Create a folder and its parents; RunError if that fails."""
    with _changing("folder", path):
        path.mkdir(parents=True, exist_ok=True)


def rename(source: Path, target: Path) -> None:
    """Rename a file or folder, replacing a file, and make the new name durable."""
    with _changing("rename", target):
        os.replace(source, target)
        sync(target.parent)


def remove(path: Path) -> None:
    """Remove a file; nothing happens if it is gone."""
    with _changing("remove", path):
        path.unlink(missing_ok=True)


def remove_tree(path: Path) -> None:
    """Remove a folder with everything in it, as far as that is possible."""
    if path.exists():
        with suppress(OSError):
            _event("remove", path)
            shutil.rmtree(path, ignore_errors=True)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder with its files, into an existing folder too; links are followed."""
    with _changing("folder", target):
        shutil.copytree(source, target, dirs_exist_ok=True)


def open_log(path: Path) -> int:
    """Open a file for appending and reading, of mode 600 if it is new; returns its descriptor."""
    with _changing("write", path):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def open_shared(path: Path) -> int:
    """Open a file for reading and writing in place, new if it is absent; returns its descriptor."""
    with _changing("write", path):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def append(handle: int, content: bytes, path: Path) -> None:
    """Append bytes and fsync them; on OSError the file is truncated to its former length."""
    start = os.fstat(handle).st_size
    try:
        with _changing("append", path):
            if os.write(handle, content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with _changing("sync", path):
            os.fsync(handle)
    except OSError:
        os.ftruncate(handle, start)
        raise


def overwrite(handle: int, content: bytes, path: Path) -> None:
    """Overwrite the start of an open file with as many bytes, in one write."""
    with _changing("append", path):
        os.pwrite(handle, content, 0)


def truncate(handle: int, length: int, path: Path) -> None:
    """Cut an open file to a length."""
    with _changing("truncate", path):
        os.ftruncate(handle, length)


def lock(handle: int, path: Path, *, shared: bool = False, wait: bool = True) -> None:
    """Lock an open file; BlockingIOError if another process holds it and this one does not wait."""
    with _changing("lock", path):
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, new if it is absent; wait while another holds it. A kill releases it."""
    handle = open_shared(path)
    try:
        lock(handle, path)
        yield
    finally:
        os.close(handle)


def sync(path: Path) -> None:
    """Make a file durable, or the names in a folder; a power failure could lose what is new in them."""
    _event("sync", path)
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _temporary(path: Path) -> Path:
    """Return a new hidden name in the folder of a file, for its content until it is whole."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
