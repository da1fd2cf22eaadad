"""Copies of NIfTI files for a release: voxels and geometry alone, under a header written anew.

Converters write names, dates and comments into a header, and any number of it can hold an identity as well.
A copy keeps the fields that say how the voxels lie and what they mean; everything else is zero.
"""

import gzip
import math
import struct
from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted import gzip_stream
from cardiolens.study.nifti import (
    GZIP_MAGIC,
    MOST_EXTENSION,
    NOT_NIFTI,
    Header,
    read_file,
    read_header,
    voxels,
)
from cardiolens.study.volume_manifest import MOST_VOXELS

_HEADER = 348  # bytes of a NIfTI-1 header
_MAGIC = b"n+1\0"
_OFFSET, _FIRST = 108, 352  # byte of the field vox_offset; its value without extensions
_SIZE_AT = 0, 4  # sizeof_hdr
# Bytes that are kept, from and to: dim_info and dim; datatype; pixdim; scl_slope and scl_inter; xyzt_units;
# qform_code and sform_code with their numbers; magic.
_KEPT = (_SIZE_AT, (39, 56), (70, 72), (76, 108), (112, 120), (123, 124), (252, 328), (344, 348))
_QFORM_CODE, _SFORM_CODE = 252, 254  # bytes of these fields
_BITPIX, _SLOPE, _INTER = 72, 112, 116
_FLAGS = (39, 123)  # dim_info and xyzt_units, each of six bits
_CODES = range(1, 6)  # of legal positions; a greater one is as good as 1, but could be a number of somebody
_DIM, _PIXDIM, _AXES = 40, 76, 7  # bytes of the arrays; axes of NIfTI beside the number of axes


def copy_of(path: Path) -> bytes:
    """Return a NIfTI-1 file with its voxels and geometry, and nothing else of the original.

    A gzipped file stays gzipped, without name and time in its header. InputError for anything but NIfTI-1,
    and for a truncated or immense file.
    """
    try:
        facts = read_header(path)
        if math.prod(facts.shape) > MOST_VOXELS:
            raise InputError(f"declares shape {facts.shape}; expected at most {MOST_VOXELS:,} voxels")
        stored = read_file(path, facts.n_bytes + MOST_EXTENSION)
        zipped = stored.startswith(GZIP_MAGIC)
        start = gzip_stream.start_of(stored, _HEADER)[0] if zipped else stored[:_HEADER]
        order = next((code for code in "<>" if start[:4] == struct.pack(f"{code}i", _HEADER)), None)
        if order is None or start[344:348] != _MAGIC:
            raise InputError(f"is no NIfTI-1 in a single file; {NOT_NIFTI}")
        header = _header(start, facts, order)
        content = b"".join([header, bytes(_FIRST - _HEADER), voxels(stored, facts).data])
    except gzip_stream.DamagedError as error:
        raise InputError(f"{path.name}: is no whole gzip file ({error}); convert it again") from None
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from None
    return gzip.compress(content, mtime=0) if zipped else content


def _header(start: bytes, facts: Header, order: str) -> bytes:
    """Header of a copy: the kept fields, and of their arrays only the axes that the volume has."""
    header = bytearray(_HEADER)
    for first, end in _KEPT:
        header[first:end] = start[first:end]
    for axis in range(len(facts.shape) + 1, _AXES + 1):
        struct.pack_into(f"{order}h", header, _DIM + 2 * axis, 1)
        struct.pack_into(f"{order}f", header, _PIXDIM + 4 * axis, 0.0)
    for at in _FLAGS:
        header[at] &= 0x3F
    struct.pack_into(f"{order}h", header, _BITPIX, 8 * facts.dtype.itemsize)
    slope = struct.unpack_from(f"{order}f", header, _SLOPE)[0]
    if not slope:  # zero means that nothing is scaled
        struct.pack_into(f"{order}2f", header, _SLOPE, 0.0, 0.0)
    for code_at, first, end in ((_QFORM_CODE, 256, 280), (_SFORM_CODE, 280, 328)):
        code = struct.unpack_from(f"{order}h", header, code_at)[0]
        if code <= 0:  # nobody reads these numbers
            header[first:end] = bytes(end - first)
        struct.pack_into(f"{order}h", header, code_at, code if code in _CODES else int(code > 0))
    handedness = struct.unpack_from(f"{order}f", header, _PIXDIM)[0]  # of the quaternion: a sign alone
    struct.pack_into(f"{order}f", header, _PIXDIM, math.copysign(1.0, handedness or 1.0))
    struct.pack_into(f"{order}f", header, _OFFSET, _FIRST)
    return bytes(header)
