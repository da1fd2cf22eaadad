"""Rings of muscle around a cavity in the slices of a mask: what only a short axis shows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

_FEWEST = 3  # slices with a ring
_LABELS = 2  # at least, in a slice that counts: muscle and cavity
_CAVITY = 12  # pixels, at least, of what a ring surrounds


def shows_rings(slices: NDArray[Any]) -> bool:
    """Return whether most slices (slice, row, column) with several labels show one that surrounds another."""
    marked = [frame for frame in slices if len(np.unique(frame[frame != 0])) >= _LABELS]
    rings = sum(_has_ring(frame) for frame in marked)
    return rings >= _FEWEST and 2 * rings > len(marked)


def _has_ring(frame: NDArray[Any]) -> bool:
    for label in np.unique(frame[frame != 0]):
        region = frame == label
        surrounded = ndimage.binary_fill_holes(region) & ~region & (frame != 0)
        if surrounded.sum() >= _CAVITY:
            return True
    return False
