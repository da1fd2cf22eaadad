"""Read NIfTI files as bytes: header, voxels, gzip. Only `volume` knows the meaning of the axes."""

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted import gzip_stream
from cardiolens.base.untrusted.bounded_files import MOST_BYTES, read_bytes, read_start
from cardiolens.study.voxel_lengths import UNTOLD, VoxelLengths, voxel_lengths

GZIP_MAGIC = gzip_stream.MAGIC
HEADER_BYTES = 540  # header size of NIfTI-2, which exceeds that of NIfTI-1
MOST_EXTENSION = 64 << 20  # bytes between header and voxels, or after the voxels
_FREE_BYTES = 256 << 20  # to which any gzip file may unpack; larger masks are stored without gzip
START_BYTES = 64 << 10  # the start of a file that contains the header, also if gzipped
_LONGEST_QUATERNION = 1.001  # by rounding
NOT_NIFTI = "expected a single-file NIfTI (.nii or .nii.gz); convert the file"


@dataclass(frozen=True, slots=True)
class Header:
    """Voxel properties from a NIfTI header; intensity = stored * slope + inter."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int  # bytes before the first voxel
    slope: float
    inter: float
    affine: NDArray[np.float64] | None  # voxel to patient (RAS, mm); None if not declared
    spacing_mm: tuple[float, float, float] | None = None  # of the first three axes; None if not declared
    lengths: VoxelLengths = UNTOLD  # by the places that declare them

    @property
    def n_bytes(self) -> int:
        return self.offset + math.prod(self.shape) * self.dtype.itemsize


def read_file(path: Path, most: int = MOST_BYTES) -> bytes:
    """Read the bytes of a file as stored, at most `most`; InputError if the file cannot be read."""
    try:
        return read_bytes(path, most)
    except OSError as error:
        remedy = "let this user read it" if isinstance(error, PermissionError) else "add it or correct path"
        raise InputError(
            f"cannot be read ({error.strerror}); expected the file that study.json names; {remedy}"
        ) from None


def read_header(path: Path) -> Header:
    """Read the header of a file without its voxels; InputError if the file cannot be read."""
    try:
        return parse_header(read_start(path, START_BYTES))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}); add the file or correct path") from None


def sha256(stored: bytes) -> str:
    """Return the SHA-256 of a file's bytes, in the form that manifests declare."""
    return hashlib.sha256(stored).hexdigest()


def parse_header(stored: bytes) -> Header:
    """Parse the header of a NIfTI file, gzipped or not; InputError if damaged or not of real numbers."""
    from nibabel.nifti1 import Nifti1Header
    from nibabel.nifti2 import Nifti2Header
    from nibabel.spatialimages import HeaderDataError
    from nibabel.wrapstruct import WrapStructError

    block = _head(stored)
    kinds = {b"n+1\0": (344, 348, Nifti1Header, 352), b"n+2\0": (4, 540, Nifti2Header, 544)}
    for magic, (at, size, kind, first) in kinds.items():
        if block[at : at + 4] == magic and len(block) >= size:
            try:
                header = kind(block[:size])
                if fault := settle_rotation(header):
                    raise InputError(f"{fault}; re-export it")
                parsed = _header(header)
            except InputError:
                raise
            except (HeaderDataError, WrapStructError, ValueError, OverflowError) as error:
                raise InputError(f"its NIfTI header is damaged ({error}); {NOT_NIFTI}") from None
            if not first <= parsed.offset <= first + MOST_EXTENSION:
                raise InputError(
                    f"its voxels begin at byte {parsed.offset}; expected {first}, where its header ends, or "
                    f"up to {MOST_EXTENSION >> 20} MiB more; re-export it"
                )
            if parsed.dtype.kind not in "iuf" or parsed.dtype.itemsize > 8:
                raise InputError(
                    f"its voxels are of type {header.get_value_label('datatype')}; expected one real number "
                    "per voxel (integers of 8 to 64 bits, floats of 32 or 64); convert it to grey values"
                )
            if parsed.affine is not None and not np.isfinite(parsed.affine).all():
                raise InputError("its affine holds NaN or infinity; expected finite numbers; re-export it")
            return parsed
    raise InputError(f"is not NIfTI: it starts with {block[:4]!r}; {NOT_NIFTI}")


def _head(stored: bytes) -> bytes:
    if not stored.startswith(GZIP_MAGIC):
        return stored[:HEADER_BYTES]
    try:
        block, ended = gzip_stream.start_of(stored, HEADER_BYTES)
    except gzip_stream.DamagedError as error:
        raise InputError(f"is not readable gzip ({error}); {NOT_NIFTI}") from None
    if len(block) < HEADER_BYTES and not ended:
        raise InputError(_truncated(len(block), HEADER_BYTES))
    return block


def _truncated(length: int, expected: int) -> str:
    return (
        f"its gzip stream is truncated after {length} of {expected} bytes; expected a whole file; "
        "copy or export it again"
    )


def _header(header: Any) -> Header:
    slope, inter = header.get_slope_inter()
    coded = int(header["sform_code"]) > 0 or int(header["qform_code"]) > 0
    lengths = voxel_lengths(header)
    unfilled = not coded and lengths.pixdim == (1, 1, 1)
    return Header(
        shape=tuple(map(int, header.get_data_shape())),
        dtype=header.get_data_dtype(),
        offset=int(header.get_data_offset()),
        slope=1.0 if slope is None else float(slope),
        inter=0.0 if inter is None else float(inter),
        affine=np.asarray(header.get_best_affine(), np.float64) if coded else None,
        spacing_mm=None if unfilled else lengths.sform or lengths.pixdim,
        lengths=lengths,
    )


def settle_rotation(header: Any) -> str:
    """Shorten a quaternion that rounding made longer than 1, as NIfTI asks readers to do.

    Return what is wrong with one that is no rotation and that alone places the voxels; else nothing.
    """
    names = [f"quatern_{letter}" for letter in "bcd"]
    length = math.sqrt(sum(float(header[name]) ** 2 for name in names))
    if 1 < length <= _LONGEST_QUATERNION:
        for name in names:
            header[name] = float(header[name]) * (1 - 1e-7) / length
        return ""
    alone = int(header["qform_code"]) > 0 and int(header["sform_code"]) <= 0
    return "" if length <= 1 or not alone else f"its quaternion has length {length:.4g}; expected at most 1"


def voxels(stored: bytes, header: Header) -> NDArray[Any]:
    """Return all voxels of a file as stored, one-dimensional; the header's first axis runs fastest."""
    gzipped = stored.startswith(GZIP_MAGIC)
    if gzipped and gzip_stream.swells(len(stored), header.n_bytes, _FREE_BYTES):
        raise InputError(
            f"unpacks to {header.n_bytes:,} bytes, over {gzip_stream.MOST_RATIO} times its size; expected "
            "voxels of an image, which gzip makes 2 to 5 times as small; store it without gzip if it is one"
        )
    content = _inflate(stored, header.n_bytes) if gzipped else stored
    if len(content) < header.n_bytes:
        raise InputError(
            f"holds {len(content)} bytes; expected {header.n_bytes} for shape {header.shape} of "
            f"{header.dtype.name}; copy or export it again"
        )
    return np.frombuffer(content, header.dtype, math.prod(header.shape), header.offset)


def _inflate(stored: bytes, n_bytes: int) -> bytes:
    """Return the first `n_bytes` of a gzip file of one or more members.

    Each member is read to its end, where the CRC reveals damage, but at most MOST_EXTENSION bytes beyond the
    size that the header declares.
    """
    try:
        return gzip_stream.unpacked(stored, n_bytes, MOST_EXTENSION)
    except gzip_stream.TruncatedError as error:
        raise InputError(_truncated(error.length, n_bytes)) from None
    except gzip_stream.TooLargeError:
        raise InputError(
            f"holds over {MOST_EXTENSION >> 20} MiB more than the {n_bytes} bytes that its "
            "header declares; expected voxels of one volume; re-export it"
        ) from None
    except gzip_stream.DamagedError as error:
        raise InputError(
            f"its gzip stream is damaged ({error}); expected a whole file; copy it again"
        ) from None
