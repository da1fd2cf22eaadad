"""Remove free text from NIfTI files; headers written by a converter may name the patient."""

import gzip
import struct
from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.study.nifti import GZIP_MAGIC, NOT_NIFTI, parse_header, read_file, voxels

_HEADER = 348  # bytes of NIfTI-1
_MAGIC = b"n+1\0"
# data_type and db_name, descrip and aux_file, intent_name: texts, from and to
_TEXTS = ((4, 32), (148, 252), (328, 344))
_OFFSET, _FIRST = 108, 352  # where the place of the first voxel stands; that place without extensions


def without_text(path: Path) -> bytes:
    """Return a NIfTI-1 file with blank text fields, no extensions and no bytes after its last voxel.

    Voxels and geometry are unchanged. A gzipped file stays gzipped, without name and time in its header.
    InputError for anything but NIfTI-1, and for a truncated file.
    """
    stored = read_file(path)
    zipped = stored.startswith(GZIP_MAGIC)
    try:
        plain = gzip.decompress(stored) if zipped else stored
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path.name}: is no whole gzip file ({error}); convert it again") from None
    order = next((code for code in "<>" if plain[:4] == struct.pack(f"{code}i", _HEADER)), None)
    if order is None or plain[344:348] != _MAGIC:
        raise InputError(f"{path.name}: is no NIfTI-1 in a single file; {NOT_NIFTI}")
    try:
        stored_voxels = voxels(plain, parse_header(plain)).tobytes()
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from None
    header = bytearray(plain[:_HEADER])
    for start, end in _TEXTS:
        header[start:end] = bytes(end - start)
    struct.pack_into(f"{order}f", header, _OFFSET, _FIRST)
    content = bytes(header) + bytes(_FIRST - _HEADER) + stored_voxels
    return gzip.compress(content, mtime=0) if zipped else content
