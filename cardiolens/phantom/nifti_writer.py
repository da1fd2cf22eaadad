"""Write NIfTI files with bytes that depend on the content alone, not on the machine."""

import struct
import zlib

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

# gzip header: deflate, no flags, no time, fastest, unknown system; gzip.compress would store the platform
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_BLOCK = 65535  # maximum bytes of a stored deflate block
_DECIMALS = 6  # for computed header values: linear algebra may round differently between machines
_COMPUTED = ("pixdim", "srow_x", "srow_y", "srow_z", "quatern_b", "quatern_c", "quatern_d")
_OFFSETS = ("qoffset_x", "qoffset_y", "qoffset_z")


def stored(frames: NDArray[np.generic]) -> NDArray[np.generic]:
    """Convert displayed frames (frame, row, column) to stored axes (column, row from the bottom, frame)."""
    return np.ascontiguousarray(frames[:, ::-1, :].transpose(2, 1, 0))


def nifti_bytes(volume_IJK: NDArray[np.generic], affine: NDArray[np.float64]) -> bytes:
    """Return a volume as the bytes of a `.nii.gz` file, in mm and scanner coordinates."""
    image = nib.Nifti1Image(volume_IJK, affine)
    image.header.set_xyzt_units("mm")
    image.set_qform(affine, code="scanner")
    image.set_sform(affine, code="scanner")
    for name in (*_COMPUTED, *_OFFSETS):
        image.header[name] = np.round(image.header[name], _DECIMALS) + 0.0  # no negative zero
    return gzipped(image.to_bytes())


def gzipped(content: bytes) -> bytes:
    """Gzip in stored blocks: compressed blocks differ between zlib builds and save little on noise."""
    starts = range(0, max(len(content), 1), _BLOCK)
    body = b"".join(_block(content[start : start + _BLOCK], last=start == starts[-1]) for start in starts)
    return _HEADER + body + struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFFFFFF)


def _block(part: bytes, *, last: bool) -> bytes:
    """Return one stored block (RFC 1951, 3.2.4)."""
    return struct.pack("<BHH", last, len(part), len(part) ^ 0xFFFF) + part
