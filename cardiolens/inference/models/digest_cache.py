"""Cache of SHA-256 digests on disk: a later command does not read an unchanged file again."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from cardiolens.base import disk
from cardiolens.base.digest import sha256_of
from cardiolens.base.untrusted.bounded_files import read_bytes

_SETTLED_NS = 2 * 10**9  # a file changed more recently may change again within one clock tick

Digests = dict[str, tuple[int, int, int, int, str]]
"""By path: size in bytes, mtime and ctime in nanoseconds, inode, SHA-256."""

_DIGESTS = TypeAdapter(Digests)


@contextmanager
def known_digests(cache: Path) -> Iterator[Callable[[Path], str]]:
    """Yield a function from a file to its SHA-256, with digests cached in the file `cache`.

    The cache is rewritten if a digest is new. An unreadable cache counts as empty; an unwritable cache is no
    error.
    """
    cached = _read(cache)
    digests = dict(cached)
    yield lambda file: _sha256(file, digests)
    if digests != cached:
        with suppress(OSError):
            cache.parent.mkdir(parents=True, exist_ok=True)
            disk.write_text(cache, _DIGESTS.dump_json(digests, indent=1).decode() + "\n")


def _read(cache: Path) -> Digests:
    try:
        return _DIGESTS.validate_json(read_bytes(cache))
    except (OSError, ValidationError):
        return {}


def _sha256(file: Path, digests: Digests) -> str:
    state = file.stat()
    fingerprint = state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino
    name = str(file.resolve())
    if name in digests and digests[name][:4] == fingerprint:
        return digests[name][4]
    began = time.time_ns()
    digest = sha256_of(file)
    if began - max(state.st_mtime_ns, state.st_ctime_ns) > _SETTLED_NS:
        digests[name] = *fingerprint, digest
    return digest
