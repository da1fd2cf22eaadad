"""Shares of tissues in the patches of a frame, from masks: what the image encoder learns first."""

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom import codes

# AHA segments of the four walls (protocol 1.3)
_WALLS = ((1, 7, 13), (2, 3, 8, 9, 14), (4, 10, 15), (5, 6, 11, 12, 16), (17,))
_LESIONS = len(_WALLS)  # place of the first kind of lesion
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


# Usual share of each kind where it is found, of a quarter of a frame and of a whole one (150 volumes of
# cohort a2). Concepts are in these units, so that a small scar counts as much as a large cavity.
_IN_QUARTER = (
    *(0.0213, 0.0261, 0.0222, 0.0331, 0.0142, 0.0114, 0.0124, 0.0111, 0.0209, 0.0125, 0.0594),
    *(0.0074, 0.0760, 0.0172, 0.0963, 0.1276, 0.1061, 0.0141, 0.0283, 0.0115, 0.0176, 0.0058),
)
_IN_FRAME = (
    *(0.0105, 0.0173, 0.0110, 0.0166, 0.0061, 0.0057, 0.0051, 0.0051, 0.0061, 0.0053, 0.0535),
    *(0.0033, 0.0382, 0.0089, 0.0423, 0.0319, 0.0301, 0.0139, 0.0144, 0.0043, 0.0088, 0.0026),
)
_MOST = 3.0  # usual shares
_RARE = 8.0  # weight of a lesion of the left ventricle, which most frames do not show


def weights() -> NDArray[np.float32]:
    """How much each concept counts, (2 kinds)."""
    own = [_RARE if _LESIONS <= place < _LESIONS + len(_WALLS) else 1.0 for place in range(len(KINDS))]
    return np.array([*own, *own], np.float32)


def concepts(patches: NDArray[np.float32], side: int, joined: int) -> NDArray[np.float32]:
    """What an image token is to tell, (frame, token, 2 kinds): usual shares of its own patches, and of all.

    `patches` are shares (frame, patch, kind) of side x side patches, of which joined x joined make a token.
    """
    n, _, kinds = patches.shape
    parts = patches.reshape(n, side // joined, joined, side // joined, joined, kinds).mean(axis=(2, 4))
    own = parts.reshape(n, -1, kinds)
    whole = np.broadcast_to(own.mean(axis=1, keepdims=True), own.shape)
    told = np.concatenate([own / np.array(_IN_QUARTER), whole / np.array(_IN_FRAME)], axis=-1)
    return np.asarray(np.minimum(told, _MOST), np.float32)


def shares(mask: NDArray[np.integer], side: int) -> NDArray[np.float32]:
    """Share of each kind in each patch, (patch, kind), of a displayed mask cut into side x side patches."""
    height, width = mask.shape
    painted = _TABLE[mask.astype(np.uint8)]
    parts = painted.reshape(side, height // side, side, width // side, -1).mean(axis=(1, 3))
    return np.asarray(parts.reshape(side * side, -1), np.float32)
