"""SHA-256 of files, kept from one command to the next: a file that did not change is not read again."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from cardiolens import tables
from cardiolens.digest import sha256_of

_SETTLED_NS = 2 * 10**9  # a file changed less than this before it was read may have changed again unseen

Known = dict[str, tuple[int, int, int, int, str]]
"""By path: bytes, nanoseconds of the last change of content and of anything, inode, SHA-256."""

_KNOWN = TypeAdapter(Known)


@contextmanager
def known_digests(kept: Path) -> Iterator[Callable[[Path], str]]:
    """Yield a function that gives the SHA-256 of a file; `kept` is read first, and written if it grew.

    A `kept` that cannot be read is as none, one that cannot be written costs the next command its time.
    """
    before = _read(kept)
    known = dict(before)
    yield lambda file: _sha256(file, known)
    if known != before:
        with suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            tables.write_text(kept, _KNOWN.dump_json(known, indent=1).decode() + "\n")


def _read(kept: Path) -> Known:
    try:
        return _KNOWN.validate_json(kept.read_bytes())
    except (OSError, ValidationError):
        return {}


def _sha256(file: Path, known: Known) -> str:
    state = file.stat()
    seen = state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino
    name = str(file.resolve())
    if name in known and known[name][:4] == seen:
        return known[name][4]
    began = time.time_ns()
    found = sha256_of(file)
    if began - max(state.st_mtime_ns, state.st_ctime_ns) > _SETTLED_NS:
        known[name] = *seen, found
    return found
