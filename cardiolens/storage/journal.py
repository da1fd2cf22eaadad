"""Files of lines that one process appends to; each is on the disk before anybody hears that it is kept."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from cardiolens.base.untrusted import parse_json, read_bytes

MOST_BYTES = 256 << 20


class AppendedFile:
    """A file of JSON Lines that this process alone appends to; BlockingIOError where another one does."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _sync_folder(path.parent)  # the name of a new file, which a fall of power could take back
        except OSError:
            self.close()
            raise
        self.path = path

    def mend(self) -> None:
        """Take away a last line that a kill cut off, so that the next one begins at its own."""
        content = read_bytes(self.path, MOST_BYTES)
        tail = content.rpartition(b"\n")[2]
        if tail and is_cut(tail):
            os.ftruncate(self._file, len(content) - len(tail))
        elif tail:
            os.write(self._file, b"\n")

    def append(self, line: bytes) -> None:
        """Append a line, which is on the disk when this returns; after an OSError nothing of it is there."""
        start = os.fstat(self._file).st_size
        try:
            if os.write(self._file, line + b"\n") != len(line) + 1:
                raise OSError("the disk is full")
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, start)
            raise

    def close(self) -> None:
        os.close(self._file)


def whole_lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers, without empty ones and without a last one that was cut off."""
    texts = content.split(b"\n")
    for number, text in enumerate(texts, start=1):
        if text.strip() and not (number == len(texts) and is_cut(text)):
            yield number, text


def is_cut(text: bytes) -> bool:
    """Whether a line is no JSON, as one that a kill cut off."""
    try:
        parse_json(text)
    except ValueError:
        return True
    return False


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
