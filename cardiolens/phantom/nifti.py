"""NIfTI files whose bytes depend on nothing but what is in them."""

import struct
import zlib

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

# gzip header: deflate, no flags, no time, fastest, unknown system; gzip.compress would store the platform
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LEVEL = 1  # noise hardly compresses: higher levels cost five times the time for 4 % of the size


def stored(frames: NDArray[np.generic]) -> NDArray[np.generic]:
    """Displayed frames (frame, row, column) as stored: (column, row from the bottom, frame)."""
    return np.ascontiguousarray(frames[:, ::-1, :].transpose(2, 1, 0))


def nifti_bytes(volume_IJK: NDArray[np.generic], affine: NDArray[np.float64]) -> bytes:
    """A volume as the bytes of a `.nii.gz` file, millimetres in scanner coordinates."""
    image = nib.Nifti1Image(volume_IJK, affine)
    image.header.set_xyzt_units("mm")
    image.set_qform(affine, code="scanner")
    image.set_sform(affine, code="scanner")
    return gzipped(image.to_bytes())


def gzipped(content: bytes) -> bytes:
    """Gzip without time, name or platform in its header."""
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(content) + deflate.flush()
    return _HEADER + body + struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFFFFFF)
