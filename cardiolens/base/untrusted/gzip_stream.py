"""Gzip of strangers: unpacked piece by piece and never beyond a bound."""

import zlib
from gzip import GzipFile
from io import BytesIO
from typing import Final

from cardiolens.base.errors import InputError

MAGIC: Final = b"\x1f\x8b"
_PIECE = 1 << 20  # bytes that are unpacked at a time
_GZIP_BITS = 31  # window bits by which zlib expects a gzip header


class GzipError(InputError):
    """A gzip stream that is cut, damaged, or unpacks to more than the bound; the message says which."""


def truncated(length: int, expected: int) -> GzipError:
    """The error of a stream that ends before its end, where `length` bytes came out of it."""
    return GzipError(
        f"its gzip stream is truncated after {length} of {expected} bytes; expected a whole file; "
        "copy or export it again"
    )


def _damaged(error: Exception) -> GzipError:
    return GzipError(f"its gzip stream is damaged ({error}); expected a whole file; copy it again")


def start_of(stored: bytes, most: int) -> tuple[bytes, bool]:
    """Return the first `most` bytes of a gzip stream, and whether it ends within them; GzipError."""
    inflater = zlib.decompressobj(wbits=_GZIP_BITS)
    try:
        return inflater.decompress(stored, most), inflater.eof
    except zlib.error as error:
        raise _damaged(error) from None


def unpacked(stored: bytes, wanted: int, spare: int) -> bytes:
    """The first `wanted` bytes of a gzip file of one or more members, which is read to its end.

    The CRC stands at the end of a member, so damage is noticed even behind the wanted bytes. Fewer than
    `wanted` come where the file holds fewer. GzipError, also for more than `wanted + spare` bytes.
    """
    content, length = bytearray(), 0
    file = GzipFile(fileobj=BytesIO(stored))
    try:
        while piece := file.read1(_PIECE):
            content += piece[: max(wanted - length, 0)]
            length += len(piece)
            if length > wanted + spare:
                raise GzipError(
                    f"holds over {spare >> 20} MiB more than the {wanted} bytes that its header declares; "
                    "expected voxels of one volume; re-export it"
                )
    except EOFError:
        raise truncated(len(content), wanted) from None
    except (OSError, zlib.error) as error:
        raise _damaged(error) from None
    return bytes(content)
