"""DICOM files of strangers: parsed only if they begin as DICOM does, unpacked and decoded within bounds."""

import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset
from pydicom.filereader import read_partial

from cardiolens.base.untrusted.bounded_files import open_binary, read_start

MOST_PIXELS: Final = 1 << 30  # bytes of the decoded frames of one file
_PIXELS: Final = (0x7FE00008, 0x7FE00009, 0x7FE00010)  # as floats of 32 and 64 bits, and as integers
_MARK_AT: Final = 128  # bytes of the preamble, before the mark
_LONGEST_META: Final = 2048  # bytes within which the transfer syntax stands
_DEFLATED: Final = b"1.2.840.10008.1.2.1.99"  # the transfer syntax
_START: Final = 64 << 10  # bytes of a file within which its meta information ends
_CHEAP: Final = 1 << 16  # bytes from which an element of a header is left unread
# Enhanced MR and legacy converted MR: the records of their frames are one long element, which is always read.
_MULTI_FRAME: Final = (b"1.2.840.10008.5.1.4.1.1.4.1", b"1.2.840.10008.5.1.4.1.1.4.4")
# First elements of files without preamble: (0008,0005), (0008,0008), (0008,0000), (0002,0000).
_FIRST_ELEMENTS: Final = (b"\x08\0\x05\0", b"\x08\0\x08\0", b"\x08\0\0\0", b"\x02\0\0\0")


class NotDicomError(ValueError):
    """A file that does not begin as DICOM does."""


class DeflatedError(ValueError):
    """A DICOM file that is packed as a whole."""


def read(path: Path, *, pixels: bool) -> Dataset:
    """Parse a DICOM file up to its pixels, or with them; what lies behind them is not looked at.

    NotDicomError after the first bytes of anything else; DeflatedError for a file that is packed as a whole;
    what pydicom raises for a damaged file.
    """
    start = read_start(path, _START)
    marked = start[_MARK_AT : _MARK_AT + 4] == b"DICM"
    if not marked and start[:4] not in _FIRST_ELEMENTS:
        raise NotDicomError("it does not begin as DICOM does")
    if _DEFLATED in start[:_LONGEST_META]:
        raise DeflatedError("it is deflated as a whole, and may unpack to anything")
    complete = pixels or any(uid in start for uid in _MULTI_FRAME)
    with warnings.catch_warnings(), open_binary(path) as file:
        warnings.simplefilter("ignore")
        stop = _is_behind_pixels if pixels else _is_pixels
        dataset = read_partial(file, stop, defer_size=None if complete else _CHEAP, force=not marked)
    if not marked and "SOPClassUID" not in dataset:
        raise NotDicomError("it has no SOP class")
    return dataset


def _is_pixels(tag: Any, _vr: str | None, _length: int) -> bool:
    return int(tag) in _PIXELS


def _is_behind_pixels(tag: Any, _vr: str | None, _length: int) -> bool:
    return int(tag) > max(_PIXELS) or int(tag) == 0


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
