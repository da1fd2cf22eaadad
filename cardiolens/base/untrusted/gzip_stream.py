"""Gzip of strangers: unpacked piece by piece and never beyond a bound."""

import zlib
from typing import Final

MAGIC: Final = b"\x1f\x8b"
MOST_RATIO: Final = 100  # of what unpacks to more than is free
_PIECE = 1 << 20  # bytes that are unpacked at a time
_GZIP_BITS = 31  # window bits by which zlib expects a gzip header and checks its CRC
_RAW_BITS = -15  # the same of a bare deflate stream


class TruncatedError(ValueError):
    """A gzip stream that ends before its end; `length` bytes came out of it."""

    def __init__(self, length: int) -> None:
        super().__init__(f"its gzip stream is truncated after {length:,} bytes")
        self.length = length


class DamagedError(ValueError):
    """A gzip stream whose bytes or CRC are wrong."""


class TooLargeError(ValueError):
    """A stream that unpacks to more than the bound."""


def swells(packed: int, unpacked: int, free: int) -> bool:
    """Return whether so many bytes unpack to more than an image does, beyond an amount that is free."""
    return unpacked > max(free, MOST_RATIO * packed)


def start_of(stored: bytes, most: int) -> tuple[bytes, bool]:
    """Return the first `most` bytes of a gzip stream, and whether it ends within them; DamagedError."""
    inflater = zlib.decompressobj(wbits=_GZIP_BITS)
    try:
        return inflater.decompress(stored, most), inflater.eof
    except zlib.error as error:
        raise DamagedError(str(error)) from None


def unpacked(stored: bytes, wanted: int, spare: int) -> bytes:
    """The first `wanted` bytes of a gzip file of one or more members, each read to its end.

    The CRC stands at the end of a member, so damage is noticed even behind the wanted bytes; at most `spare`
    bytes beyond them are unpacked, and dropped. Fewer than `wanted` come where the file holds fewer.
    TruncatedError, DamagedError; TooLargeError for more than `wanted + spare` bytes.
    """
    content, excess, at, view = bytearray(), 0, 0, memoryview(stored)
    try:
        while len(content) < wanted and stored.startswith(MAGIC, at):
            inflater = zlib.decompressobj(wbits=_GZIP_BITS)
            while not inflater.eof:
                missing = wanted - len(content)
                piece = inflater.decompress(view[at : at + _PIECE], min(missing, _PIECE) or _PIECE)
                left = len(inflater.unconsumed_tail) + len(inflater.unused_data)
                fed = min(_PIECE, len(stored) - at) - left
                if not fed and not piece and not inflater.eof:
                    raise TruncatedError(len(content))
                at += fed
                content += piece[:missing]
                excess += max(len(piece) - missing, 0)
                if excess > spare:
                    raise TooLargeError(f"it unpacks to more than {wanted + spare:,} bytes")
    except zlib.error as error:
        raise DamagedError(str(error)) from None
    return bytes(content)


def raw_unpacked(stored: bytes, most: int) -> bytes:
    """All of a bare deflate stream; TooLargeError for more than `most` bytes, else as `unpacked`."""
    inflater = zlib.decompressobj(wbits=_RAW_BITS)
    try:
        content = inflater.decompress(stored, most)
        if not inflater.eof and inflater.decompress(inflater.unconsumed_tail, 1):
            raise TooLargeError(f"it unpacks to more than {most:,} bytes")
    except zlib.error as error:
        raise DamagedError(str(error)) from None
    if not inflater.eof and not inflater.flush(1) and not inflater.eof:
        raise TruncatedError(len(content))
    return content
