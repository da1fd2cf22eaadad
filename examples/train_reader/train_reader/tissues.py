"""Tissues of a frame, from the phantom's masks: the first training targets of the image encoder.

Each pixel has one kind of tissue. The target of an image token is the amount of every kind in its part of
the frame and in the whole frame.
"""

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom import codes

# AHA segments of the four walls and of the apical cap (protocol 1.3)
_WALLS = ((1, 7, 13), (2, 3, 8, 9, 14), (4, 10, 15), (5, 6, 11, 12, 16), (17,))
_N_WALLS = len(_WALLS)
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
_HURT = (codes.LESION, codes.OBSTRUCTION)
KINDS: tuple[tuple[int, ...], ...] = (  # mask codes of each kind; kind 0 is everything around the heart
    (),
    *(tuple(added + segment for added in (0, codes.DARK_RIM) for segment in wall) for wall in _WALLS),
    *(tuple(added + segment for added in _HURT for segment in wall) for wall in _WALLS),
    *_OTHERS,
)
WALLS = tuple(range(1, 1 + _N_WALLS))
LESIONS = tuple(range(1 + _N_WALLS, 1 + 2 * _N_WALLS))
_COMMON = {0: 1.0, 1 + 2 * _N_WALLS: 4.0, 3 + 2 * _N_WALLS: 4.0}  # background and blood of both ventricles
_SCARCE = 8.0
# Weight of a pixel by kind: about the inverse root of the kind's share, within limits.
WEIGHTS = tuple(_COMMON.get(kind, _SCARCE) for kind in range(len(KINDS)))

_TABLE = np.zeros(256, np.uint8)
for _kind, _codes in enumerate(KINDS):
    _TABLE[[code for code in _codes if code < 256]] = _kind

# Usual share of each kind except background, where it occurs, in a quarter of a frame and in a whole frame
# (150 volumes of cohort a2); lesions count to their wall too. Concepts are in these units, so that a small
# scar counts as much as a large cavity.
_IN_QUARTER = (
    *(0.0213, 0.0261, 0.0222, 0.0331, 0.0142, 0.0114, 0.0124, 0.0111, 0.0209, 0.0125, 0.0594),
    *(0.0074, 0.0760, 0.0172, 0.0963, 0.1276, 0.1061, 0.0141, 0.0283, 0.0115, 0.0176, 0.0058),
)
_IN_FRAME = (
    *(0.0105, 0.0173, 0.0110, 0.0166, 0.0061, 0.0057, 0.0051, 0.0051, 0.0061, 0.0053, 0.0535),
    *(0.0033, 0.0382, 0.0089, 0.0423, 0.0319, 0.0301, 0.0139, 0.0144, 0.0043, 0.0088, 0.0026),
)
_MOST = 3.0  # upper limit of a concept, in usual shares
_RARE = 8.0  # weight of left ventricular lesions, which most frames do not show


def pixel_kinds(mask: NDArray[np.integer], side: int) -> NDArray[np.uint8]:
    """Return the tissue kind of each pixel, uint8 (side, side), of a square displayed mask of any size."""
    sample_places = ((np.arange(side) + 0.5) * mask.shape[0] / side).astype(int)
    return _TABLE[mask[np.ix_(sample_places, sample_places)].astype(np.uint8)]


def healed(kinds: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Replace lesions by their wall, for frames in which lesions are not visible."""
    lesion = np.isin(kinds, LESIONS)
    return np.where(lesion, kinds - _N_WALLS, kinds).astype(np.uint8)


def concepts(kinds: NDArray[np.uint8], parts: int) -> NDArray[np.float32]:
    """Return the targets of image tokens, (frame, token, concept): usual shares in part and in frame.

    `kinds` are tissue kinds of pixels, (frame, row, column); a frame has parts x parts tokens.
    """
    n, side, _ = kinds.shape
    painted = np.eye(len(KINDS), dtype=np.float32)[kinds]
    shares = painted.reshape(n, parts, side // parts, parts, side // parts, -1).mean(axis=(2, 4))
    shares[..., WALLS] += shares[..., LESIONS]
    part_shares = shares.reshape(n, parts * parts, -1)[..., 1:]
    frame_shares = np.broadcast_to(part_shares.mean(axis=1, keepdims=True), part_shares.shape)
    targets = np.concatenate(
        [part_shares / np.array(_IN_QUARTER), frame_shares / np.array(_IN_FRAME)], axis=-1
    )
    return np.asarray(np.minimum(targets, _MOST), np.float32)


def concept_weights() -> NDArray[np.float32]:
    """Return the weight of each concept's error."""
    weights = [_RARE if kind in LESIONS else 1.0 for kind in range(1, len(KINDS))]
    return np.array([*weights, *weights], np.float32)
