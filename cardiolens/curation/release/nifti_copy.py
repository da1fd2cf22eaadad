"""Copies of NIfTI files for a release: voxels and geometry alone, under a header written anew.

Converters write names, dates and comments into a header, and any number of it can hold an identity as well.
A copy keeps the fields that say how the voxels lie and what they mean; everything else is zero.
"""

import gzip
import math
from pathlib import Path

import numpy as np
from nibabel.nifti1 import Nifti1Header

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

_HEADER, _FIRST = 348, 352  # bytes of a NIfTI-1 header; where voxels begin without extensions
_KEPT = ("sizeof_hdr", "datatype", "scl_slope", "scl_inter", "magic")
_FLAGS = ("dim_info", "xyzt_units")  # each of six bits
_POSITIONS = {
    "qform_code": ("quatern_b", "quatern_c", "quatern_d", "qoffset_x", "qoffset_y", "qoffset_z"),
    "sform_code": ("srow_x", "srow_y", "srow_z"),
}
_CODES = range(1, 6)  # of legal positions; a greater one is as good as 1, but could be a number of somebody


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
        if start[344:348] != b"n+1\0":
            raise InputError(f"is no NIfTI-1 in a single file; {NOT_NIFTI}")
        header = _header(Nifti1Header(start, check=False), facts)
        content = b"".join([header, bytes(_FIRST - _HEADER), voxels(stored, facts).data])
    except gzip_stream.GzipError as error:
        raise InputError(f"{path.name}: is no whole gzip file ({error}); convert it again") from None
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from None
    return gzip.compress(content, mtime=0) if zipped else content


def _header(original: Nifti1Header, facts: Header) -> bytes:
    """Header of a copy: the kept fields, and of their arrays only the axes that the volume has."""
    copy = np.zeros((), original.structarr.dtype)
    for name in _KEPT:
        copy[name] = original[name]
    for name in _FLAGS:
        copy[name] = int(original[name]) & 0x3F
    n_axes = len(facts.shape)
    copy["dim"] = [n_axes, *facts.shape, *[1] * (7 - n_axes)]
    copy["pixdim"][: n_axes + 1] = original["pixdim"][: n_axes + 1]
    handedness = float(original["pixdim"][0])  # of the quaternion: a sign alone
    copy["pixdim"][0] = math.copysign(1.0, handedness or 1.0)
    copy["bitpix"], copy["vox_offset"] = 8 * facts.dtype.itemsize, _FIRST
    if not copy["scl_slope"]:  # zero means that nothing is scaled
        copy["scl_inter"] = 0.0
    for code, names in _POSITIONS.items():
        if (declared := int(original[code])) > 0:  # else nobody reads these numbers
            copy[code] = declared if declared in _CODES else 1
            for name in names:
                copy[name] = original[name]
    return copy.tobytes()
