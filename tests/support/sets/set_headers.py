"""NIfTI headers with the traits of public sets: unit sforms, lengths in `pixdim` alone, wrong times."""

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom.phantom_cohort import gzipped

Array = NDArray[np.generic]


def positioned(voxels: Array, affine: NDArray[np.float64], step: float | None = None) -> bytes:
    """A file with its position; `step` stands in the fourth voxel length, in no declared unit."""
    image = nib.Nifti1Image(np.ascontiguousarray(voxels), np.round(affine, 6))
    image.header.set_xyzt_units("mm", "sec")
    image.set_qform(np.round(affine, 6), code=1)
    image.set_sform(np.round(affine, 6), code=1)
    if step is not None:
        image.header["pixdim"][4] = step
    return gzipped(image.to_bytes())


def unit_sform(voxels: Array, spacing: tuple[float, float, float], *, qform: bool) -> bytes:
    """A file with unit columns in the sform and true lengths in `pixdim`, as ACDC and EMIDEC have it."""
    image = nib.Nifti1Image(np.ascontiguousarray(voxels), np.diag([-1.0, -1.0, 1.0, 1.0]))
    image.header.set_xyzt_units("mm", "sec")
    if qform:
        image.set_qform(np.diag([-spacing[0], -spacing[1], spacing[2], 1.0]), code=1)
    image.set_sform(np.diag([-1.0, -1.0, 1.0, 1.0]), code=1)
    image.header["pixdim"][1:4] = spacing
    return gzipped(image.to_bytes())


def straight(voxels: Array, spacing: tuple[float, float, float]) -> bytes:
    """A file whose affine tells the lengths and no position."""
    return positioned(voxels, np.diag([-spacing[0], -spacing[1], spacing[2], 1.0]))
