"""Digests of values, files and folders; equal content has the same digest on every machine."""

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path

from cardiolens.base.untrusted.bounded_files import read_bytes

DIGEST_BYTES = 16


def digest_of(value: object) -> str:
    """32 hex digits of a value made of JSON types."""
    return hashlib.blake2b(_canonical(value).encode(), digest_size=DIGEST_BYTES).hexdigest()


def digest_of_rows(rows: Iterable[object]) -> str:
    """What `digest_of` says of a list of these values, one in memory at a time."""
    total = hashlib.blake2b(b"[", digest_size=DIGEST_BYTES)
    for number, row in enumerate(rows):
        total.update(f"{',' if number else ''}{_canonical(row)}".encode())
    total.update(b"]")
    return total.hexdigest()


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file's content in hex digits."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def digest_of_files(files: list[Path], sha256: Callable[[Path], str] = sha256_of) -> str:
    """32 hex digits over the names and contents of files, in name order; `sha256` digests one content."""
    total = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for path in sorted(files, key=lambda path: path.name):
        total.update(f"{path.name}\0{sha256(path)}\n".encode())
    return total.hexdigest()


def digest_of_tree(root: Path) -> str:
    """32 hex digits over the paths and contents of all files below a folder, `.pyc` files excepted."""
    total = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for path in sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        content = hashlib.sha256(read_bytes(path)).hexdigest()
        total.update(f"{path.relative_to(root).as_posix()}\0{content}\n".encode())
    return total.hexdigest()
