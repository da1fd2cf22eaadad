"""An unlinked temporary file; the kernel removes it when the process ends."""

import os
import weakref
from tempfile import gettempdir, mkstemp

import pyarrow as pa

from cardiolens.base.errors import RunError

Place = tuple[int, int]  # start and length


class UnlinkedFile:
    """A file that only this process writes; it is gone with the process, even after a kill.

    A pickled copy is read-only and works in processes of this user while this one lives.
    """

    def __init__(self) -> None:
        self._file, path = mkstemp(prefix="cardiolens-")
        os.unlink(path)
        weakref.finalize(self, os.close, self._file)
        self._end = 0

    def append(self, content: memoryview | bytes | pa.Buffer) -> Place:
        """Append bytes and return their place; RunError if they do not fit."""
        remaining = memoryview(content)
        place = self._end, len(remaining)
        try:
            while remaining:
                n_written = os.pwrite(self._file, remaining, self._end)
                remaining, self._end = remaining[n_written:], self._end + n_written
        except OSError as error:
            raise RunError(
                f"{gettempdir()}: what is judged and scored does not fit there ({error.strerror}); free "
                "space, or name another folder in TMPDIR, then run again"
            ) from error
        return place

    def __getstate__(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self._file}"

    def __setstate__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)
        self._end = 0

    def read(self, place: Place) -> bytearray:
        """The bytes at a place."""
        start, length = place
        content = bytearray(length)
        view, at = memoryview(content), 0
        while at < length:
            at += os.preadv(self._file, [view[at:]], start + at)
        return content
