"""Write NIfTI files with bytes that depend on the content alone, not on the machine."""

import gzip

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

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
    """Gzip without compression, which saves little on noise, and without a time."""
    return gzip.compress(content, compresslevel=0, mtime=0)
