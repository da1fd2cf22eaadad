"""Zip archives of strangers: listed, and read member by member without unpacking to disk."""

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import IO, BinaryIO

from cardiolens.base.untrusted.gzip_stream import TooLargeError

Member = zipfile.ZipInfo


class BrokenArchiveError(ValueError):
    """An archive or a member that cannot be unpacked: damaged, encrypted, or of an unknown method."""


def is_zip(path: str) -> bool:
    """Whether a file ends as a zip file does."""
    return zipfile.is_zipfile(path)


def members(path: str) -> list[Member]:
    """The members of an archive by name; BrokenArchiveError where it is damaged."""
    return sorted(_archive(path).infolist(), key=lambda member: member.filename)


def read_member(path: str, name: str, most: int) -> bytes:
    """All bytes of a member; TooLargeError for more than `most`, else BrokenArchiveError."""
    with _broken(), _archive(path).open(name) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise TooLargeError(f"it unpacks to more than {most:,} bytes")
    return content


def open_member(path: str, name: str, most: int) -> BinaryIO:
    """A member as a file that unpacks only as far as it is read; TooLargeError beyond `most` bytes.

    BrokenArchiveError, here and where the file is read.
    """
    with _broken():
        return _Unpacking(_archive(path).open(name), most)


def size_of(path: str, name: str) -> int:
    """Bytes of a member, as the archive declares."""
    with _broken():
        return _archive(path).getinfo(name).file_size


@contextmanager
def _broken() -> Iterator[None]:
    """Turn what zipfile, zlib, bz2 and lzma raise for damage into one error."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - zlib, bz2 and lzma raise kinds of their own for damage
        raise BrokenArchiveError(type(error).__name__) from None


@lru_cache(maxsize=2)
def _archive(path: str) -> zipfile.ZipFile:
    """An archive, kept open: reading its directory anew for each member is quadratic in their number."""
    with _broken():
        return zipfile.ZipFile(path)


class _Unpacking(io.BytesIO):
    """A growing buffer in front of a stream that can only be read once."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        super().__init__()
        self._stream, self._most, self._ended = stream, most, False

    def read(self, size: int | None = -1, /) -> bytes:
        self._unpack(None if size is None or size < 0 else self.tell() + size)
        return super().read(size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        if whence == io.SEEK_END:
            self._unpack(None)
        elif whence == io.SEEK_SET:
            self._unpack(offset)
        else:
            self._unpack(self.tell() + offset)
        return super().seek(offset, whence)

    def close(self) -> None:
        self._stream.close()
        super().close()

    def _unpack(self, until: int | None) -> None:
        """Fill the buffer up to an offset, or to the end."""
        at, have = self.tell(), len(self.getbuffer())
        while not self._ended and (until is None or have < until):
            with _broken():
                piece = self._stream.read(1 << 16)
            self._ended = not piece
            super().seek(have)
            self.write(piece)
            have += len(piece)
            if have > self._most:
                raise TooLargeError(f"it unpacks to more than {self._most:,} bytes")
        super().seek(at)
