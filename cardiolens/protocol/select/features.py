"""Frame features for data-driven selectors, made without labels or questions (protocol 6).

A vector has three blocks, each scaled to unit length: brightness of the centre, its edge directions, and its
change to the neighbouring phases. Choices that protocol 6 leaves open: the centre is a square of 70 % of the
shorter side; edges are central differences of the small picture, weighted by strength, in eight signed
directions; the phases of a cardiac cycle wrap around, those of a first pass do not.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SIDE = 32
CELLS = 4
BINS = 8
N_FEATURES = SIDE * SIDE + CELLS * CELLS * BINS + 2 * CELLS * CELLS
VERSION = "1"
_CENTRE = 0.7
_STEPS = 256  # small pictures are rounded to 1/256 grey level, so that sums are equal on all machines


def volume_features(frames_FHW: NDArray[np.uint8], n_phases: int, cyclic: bool) -> NDArray[np.float32]:
    """Return one vector per frame, in canonical order; frames are windowed grey values as displayed."""
    small = small_pictures(frames_FHW)
    n_frames = len(small)
    blocks = (
        small.reshape(n_frames, -1),
        _edge_directions(small),
        _changes(small.reshape(-1, n_phases, SIDE, SIDE), cyclic).reshape(n_frames, -1),
    )
    return np.concatenate([_unit(block) for block in blocks], axis=1).astype(np.float32)


def small_pictures(frames_FHW: NDArray[np.uint8]) -> Floats:
    """Return the central square of each frame as 32 x 32 area means."""
    height, width = frames_FHW.shape[1:]
    side = _CENTRE * min(height, width)
    down, across = _area_weights(height, side), _area_weights(width, side)
    means = np.empty((len(frames_FHW), SIDE, SIDE))
    for idx, frame in enumerate(frames_FHW):  # one frame at a time: float64 is eight times the size
        means[idx] = down @ frame.astype(np.float64) @ across.T
    return np.rint(means * _STEPS) / _STEPS


@lru_cache(maxsize=64)
def _area_weights(length: int, side: float) -> Floats:
    """Return pixel weights for the cells of a centred span of `side` pixels; one row per cell, sum 1."""
    edges = (length - side) / 2 + side * np.arange(SIDE + 1) / SIDE
    pixels = np.arange(length)
    upper = np.minimum(edges[1:, None], pixels + 1)
    lower = np.maximum(edges[:-1, None], pixels)
    weights: Floats = np.clip(upper - lower, 0, None) * SIDE / side
    return weights


def _edge_directions(small: Floats) -> Floats:
    """Return edge strength by cell and direction, (frames, cells * cells * bins)."""
    along_y, along_x = np.gradient(small, axis=(1, 2))
    strength = np.hypot(along_y, along_x)
    turns = np.arctan2(along_y, along_x) / (2 * np.pi)
    bins = np.floor(turns * BINS + 0.5).astype(np.int64) % BINS  # bins are centred on their directions
    by_bin = np.where(bins[..., None] == np.arange(BINS), strength[..., None], 0.0)
    return _cell_means(by_bin).reshape(len(small), -1)


def _changes(small: Floats, cyclic: bool) -> Floats:
    """Return the mean absolute difference by cell to previous and next phase of (slices, phases, y, x)."""
    previous = np.roll(small, 1, axis=1)
    if not cyclic:
        previous[:, 0] = small[:, 0]
    from_previous = np.abs(small - previous)
    to_next = np.roll(from_previous, -1, axis=1)
    n_slices, n_phases = small.shape[:2]
    both = np.stack([from_previous, to_next], axis=-1).reshape(-1, SIDE, SIDE, 2)
    return np.moveaxis(_cell_means(both), -1, 1).reshape(n_slices, n_phases, -1)


def _cell_means(values: Floats) -> Floats:
    """Return means over the cells of a 4 x 4 grid, (frames, 4, 4, bins)."""
    size = SIDE // CELLS
    shaped = values.reshape(len(values), CELLS, size, CELLS, size, values.shape[-1])
    means: Floats = shaped.mean(axis=(2, 4))
    return means


def _unit(block: Floats) -> Floats:
    """Scale rows to unit length; a row of zeros stays zero."""
    length = np.linalg.norm(block, axis=1, keepdims=True)
    unit: Floats = np.divide(block, length, out=np.zeros_like(block), where=length > 0)
    return unit
