"""Values in a temporary file without a name, so that memory does not grow with them."""

import os
import pickle
from collections.abc import Iterator, Mapping
from tempfile import TemporaryFile, gettempdir
from typing import IO, TypeVar

import pyarrow as pa

from cardiolens.base.errors import RunError

Extent = tuple[int, int]  # start and length
Name = TypeVar("Name")
Value = TypeVar("Value")


class UnlinkedFile:
    """A file that only this process writes; it is gone with the process, even after a kill.

    A pickled copy is read-only and works in processes of this user while this one lives.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] = TemporaryFile(prefix="cardiolens-")  # noqa: SIM115 - closed with this object
        self._end = 0

    def append(self, content: bytes | pa.Buffer) -> Extent:
        """Append bytes and return their place; RunError if they do not fit."""
        place = self._end, len(content)
        try:
            self._file.write(content)
            self._file.flush()
        except OSError as error:
            raise RunError(
                f"{gettempdir()}: what is judged and scored does not fit there ({error.strerror}); free "
                "space, or name another folder in TMPDIR, then run again"
            ) from error
        self._end += len(content)
        return place

    def read(self, place: Extent) -> bytes:
        """The bytes at a place."""
        start, length = place
        return os.pread(self._file.fileno(), length, start)

    def __del__(self) -> None:
        self._file.close()

    def __getstate__(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self._file.fileno()}"

    def __setstate__(self, path: str) -> None:
        self._file = open(path, "rb")  # noqa: SIM115 - closed with this object
        self._end = 0


class SpilledMapping(Mapping[Name, Value]):
    """A mapping of pickled values. Only the process that made it writes; pickled copies only read."""

    def __init__(self) -> None:
        self._file = UnlinkedFile()
        self._places: dict[Name, Extent] = {}

    def __setitem__(self, name: Name, value: Value) -> None:
        self._places[name] = self._file.append(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))

    def __getitem__(self, name: Name) -> Value:
        value: Value = pickle.loads(self._file.read(self._places[name]))
        return value

    def __iter__(self) -> Iterator[Name]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
