"""DICOM files of strangers: parsed only if they begin as DICOM does, unpacked and decoded within bounds."""

import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydicom import dcmread
from pydicom.dataset import Dataset
from pydicom.filereader import read_dataset, read_partial
from pydicom.uid import DeflatedExplicitVRLittleEndian

from cardiolens.base.untrusted.bounded_files import open_binary, read_bytes, read_start
from cardiolens.base.untrusted.gzip_stream import raw_unpacked

MOST_PIXELS: Final = 1 << 30  # bytes of the decoded frames of one file
_MOST_DEFLATED: Final = 512 << 20  # bytes of a deflated file, packed and unpacked
_PIXELS: Final = (0x7FE00008, 0x7FE00009, 0x7FE00010)  # as floats of 32 and 64 bits, and as integers
_MARK_AT: Final = 128  # bytes of the preamble, before the mark
_FIRST_AT: Final = _MARK_AT + 4
_START: Final = 64 << 10  # bytes of a file within which its meta information ends
_CHEAP: Final = 1 << 16  # bytes from which an element of a header is left unread
# Enhanced MR and legacy converted MR: the records of their frames are one long element, which is always read.
_MULTI_FRAME: Final = (b"1.2.840.10008.5.1.4.1.1.4.1", b"1.2.840.10008.5.1.4.1.1.4.4")
_LONG_LENGTHS: Final = (b"OB", b"OW", b"OF", b"SQ", b"UT", b"UN", b"OD", b"OL", b"UC", b"UR")
# First elements of files without preamble: (0008,0005), (0008,0008), (0008,0000), (0002,0000).
_FIRST_ELEMENTS: Final = (b"\x08\0\x05\0", b"\x08\0\x08\0", b"\x08\0\0\0", b"\x02\0\0\0")


class NotDicomError(ValueError):
    """A file that does not begin as DICOM does."""


def read(path: Path, *, pixels: bool) -> Dataset:
    """Parse a DICOM file up to its pixels, or with them; what lies behind them is not looked at.

    NotDicomError after the first bytes of anything else; what pydicom raises for a damaged file; ValueError
    for one that unpacks to more than a file may have.
    """
    start = read_start(path, _START)
    marked = start[_MARK_AT:_FIRST_AT] == b"DICM"
    if not marked and start[:4] not in _FIRST_ELEMENTS:
        raise NotDicomError("it does not begin as DICOM does")
    stop = _is_behind_pixels if pixels else _is_pixels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        syntax, end = _transfer_syntax(start, _FIRST_AT if marked else 0)
        if syntax == str(DeflatedExplicitVRLittleEndian):
            dataset = _inflated(path, start, end, stop)
        else:
            complete = pixels or any(uid in start for uid in _MULTI_FRAME)
            with open_binary(path) as file:
                dataset = read_partial(file, stop, defer_size=None if complete else _CHEAP, force=not marked)
    if not marked and "SOPClassUID" not in dataset:
        raise NotDicomError("it has no SOP class")
    return dataset


def _inflated(path: Path, start: bytes, end: int, stop: Callable[[Any, str | None, int], bool]) -> Dataset:
    """Parse a deflated file; pydicom alone would unpack it whatever it unpacks to."""
    body = raw_unpacked(read_bytes(path, _MOST_DEFLATED)[end:], _MOST_DEFLATED)
    dataset = read_dataset(BytesIO(body), is_implicit_VR=False, is_little_endian=True, stop_when=stop)
    dataset.file_meta = dcmread(BytesIO(start[:end]), force=True).file_meta
    dataset.set_original_encoding(is_implicit_vr=False, is_little_endian=True)
    return dataset


def _is_pixels(tag: Any, _vr: str | None, _length: int) -> bool:
    return int(tag) in _PIXELS


def _is_behind_pixels(tag: Any, _vr: str | None, _length: int) -> bool:
    return int(tag) > max(_PIXELS) or int(tag) == 0


def _transfer_syntax(start: bytes, at: int) -> tuple[str, int]:
    """The transfer syntax that the meta information names, and the byte at which that information ends.

    Group 2 is always of explicit little-endian elements (PS3.10, 7.1).
    """
    syntax = ""
    while start[at : at + 2] == b"\x02\0":
        long = start[at + 4 : at + 6] in _LONG_LENGTHS
        first = at + (12 if long else 8)
        length = int.from_bytes(start[first - (4 if long else 2) : first], "little")
        if start[at : at + 4] == b"\x02\0\x10\0":
            syntax = start[first : first + length].rstrip(b"\0 ").decode("ascii", "replace")
        at = first + length
    return syntax, at


def frames_of(dataset: Dataset) -> NDArray[Any]:
    """Decoded stored values of all frames; ValueError for more than MOST_PIXELS bytes, else as pydicom."""
    frames = int(dataset.get("NumberOfFrames") or 1)
    n_bytes = frames * int(dataset.Rows) * int(dataset.Columns) * int(dataset.BitsAllocated) // 8
    n_bytes *= int(dataset.get("SamplesPerPixel") or 1)
    if n_bytes > MOST_PIXELS:
        raise ValueError(f"its frames have {n_bytes:,} bytes; expected at most {MOST_PIXELS:,}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(dataset.pixel_array)
