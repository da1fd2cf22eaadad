"""Shares of tissues in the patches of a frame, from a phantom's masks: what the image encoder learns first."""

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom import codes

# AHA segments of the four walls (protocol 1.3)
_WALLS = ((1, 7, 13), (2, 3, 8, 9, 14), (4, 10, 15), (5, 6, 11, 12, 16), (17,))
_OTHERS = (
    (codes.LV_BLOOD,),
    (codes.PAPILLARY,),
    (codes.RV_BLOOD,),
    (codes.RV_WALL,),
    (codes.LA_BLOOD,),
    (codes.RA_BLOOD,),
    (codes.AORTA,),
    (codes.FLUID,),
    (codes.BASE_WALL, codes.LEAFLET),
    (codes.JET,),
    (codes.LESION + codes.RV_WALL,),
    (codes.LESION + codes.PAPILLARY,),
)


def _kinds() -> tuple[tuple[int, ...], ...]:
    """Codes of each kind of tissue; a kind that lies in another is counted in both."""
    added = (0, codes.LESION, codes.OBSTRUCTION, codes.DARK_RIM)
    walls = tuple(tuple(part + segment for part in added for segment in wall) for wall in _WALLS)
    lesions = tuple(tuple(part + segment for part in added[1:3] for segment in wall) for wall in _WALLS)
    return (*walls, *lesions, *_OTHERS)


KINDS = _kinds()
_TABLE = np.zeros((256, len(KINDS)), np.float32)
for _place, _kind in enumerate(KINDS):
    _TABLE[[code for code in _kind if code < 256], _place] = 1


def shares(mask: NDArray[np.integer], side: int) -> NDArray[np.float32]:
    """Share of each kind in each patch, (patch, kind), of a displayed mask cut into side x side patches."""
    height, width = mask.shape
    painted = _TABLE[mask.astype(np.uint8)]
    parts = painted.reshape(side, height // side, side, width // side, -1).mean(axis=(1, 3))
    return np.asarray(parts.reshape(side * side, -1), np.float32)
