"""Voxels without a value (NaN) around a picture, as reslicing leaves them, become 0; all others are refused.

0 is what windows and checks take for padding. A gap within the picture is damage: nothing may stand for it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from cardiolens.curation.ingest.image import RejectedError
from cardiolens.curation.ingest.reasons import Reason

Array = NDArray[Any]
Mask = NDArray[np.bool_]


def with_zeros(voxels: Array) -> tuple[Array, Mask | None]:
    """Return voxels with 0 in the place of NaN, and where that is; RejectedError for infinite voxels."""
    if voxels.dtype.kind != "f" or np.isfinite(voxels).all():
        return voxels, None
    missing: Mask = np.isnan(voxels)
    if infinite := int(np.isinf(voxels).sum()):
        raise RejectedError(Reason.NOT_FINITE, f"{infinite} voxels are infinite")
    return np.where(missing, voxels.dtype.type(0), voxels), missing


def check_border(missing: Mask) -> None:
    """Check that missing voxels (slice, phase, row, column) surround each frame; RejectedError if not."""
    inside = 0
    for frame in missing.reshape(-1, *missing.shape[2:]):
        if not frame.any():
            continue
        if frame.all():
            raise RejectedError(Reason.NOT_FINITE, "a slice holds no value at all; cut it off")
        regions, count = ndimage.label(frame)
        edge = np.concatenate([regions[0], regions[-1], regions[:, 0], regions[:, -1]])
        sizes = np.bincount(regions.ravel(), minlength=count + 1)
        sizes[np.union1d(edge, [0])] = 0
        inside += int(sizes.sum())
    if inside:
        raise RejectedError(Reason.NOT_FINITE, f"{inside} voxels within the picture hold no value")
