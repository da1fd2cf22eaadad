"""Append-only JSON Lines; every line is fsynced before `append` returns."""

import os
from collections.abc import Iterator
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.untrusted.bounded_files import parse_json, read_bytes

MOST_BYTES = 256 << 20


class AppendedFile:
    """A JSON Lines file locked for appending; BlockingIOError if another process holds the lock."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = disk.open_log(path)
        try:
            disk.lock(self._file, path, wait=False)
            disk.sync_folder(path.parent)  # a power failure could lose the name of a new file
        except OSError:
            self.close()
            raise
        self.path = path

    def mend(self) -> None:
        """Truncate a last line that a killed writer cut off; end a complete one with its newline."""
        content = read_bytes(self.path, MOST_BYTES)
        tail = content.rpartition(b"\n")[2]
        if tail and is_cut(tail):
            disk.truncate(self._file, len(content) - len(tail), self.path)
        elif tail:
            disk.append(self._file, b"\n", self.path)

    def append(self, line: bytes) -> None:
        """Append and fsync a line; on OSError the file is truncated to its former length."""
        disk.append(self._file, line + b"\n", self.path)

    def close(self) -> None:
        os.close(self._file)


def whole_lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield line numbers and lines, without blank lines and without a last line that was cut off."""
    texts = content.split(b"\n")
    for number, text in enumerate(texts, start=1):
        if text.strip() and not (number == len(texts) and is_cut(text)):
            yield number, text


def is_cut(text: bytes) -> bool:
    """Whether a line is not JSON, e.g. because a kill cut it off."""
    try:
        parse_json(text)
    except ValueError:
        return True
    return False
