"""Features of frames, from their pixels alone, and the algorithms that choose among them."""

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TIE = 1e-9
_ROUNDS = 20
_SAME = 1e-12  # smaller squared distances are rounding errors of equal frames
SIDE = 32
CELLS = 4
BINS = 8
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
    unit: Floats = block / np.where(length > 0, length, 1)
    return unit


def distances(features: NDArray[np.floating]) -> Floats:
    """Return Euclidean distances of all pairs of rows, (frames, frames) in float64."""
    rows = features.astype(np.float64)
    squares = np.einsum("fd,fd->f", rows, rows)
    squared: Floats = squares[:, None] + squares - 2 * (rows @ rows.T)
    np.fill_diagonal(squared, 0)
    distance: Floats = np.sqrt(np.where(squared < _SAME, 0, squared))
    return distance


def kcenter(distance: Floats, k: int) -> list[int]:
    """Choose the medoid, then repeatedly the frame farthest from all chosen; ties go to the first."""
    chosen = [_first(-distance.sum(axis=1))] if k > 0 else []
    nearest = distance[chosen[0]].copy() if chosen else distance[:0]
    while len(chosen) < min(k, len(distance)):
        nearest[chosen] = -1  # never take a frame twice; take duplicates only when no other frame is left
        chosen.append(_first(nearest))
        np.minimum(nearest, distance[chosen[-1]], out=nearest)
    return chosen


def kmedoids(distance: Floats, k: int) -> list[int]:
    """Improve k-centre frames by best single swaps until none gains, at most 20; sorted ascending.

    The gain of a swap is the fall of the summed distance to the nearest medoid.
    """
    medoids = np.sort(kcenter(distance, k)).astype(np.int64)
    for _ in range(_ROUNDS if k > 0 else 0):
        to_medoids = np.vstack([distance[medoids], np.full(len(distance), np.inf)])
        nearest, second = np.partition(to_medoids, 1, axis=0)[:2]
        with_new = np.minimum(distance, nearest)  # (new medoid, frame)
        without_old = np.minimum(distance, second) - with_new
        owned = to_medoids.argmin(axis=0)[:, None] == np.arange(len(medoids))
        gains = (nearest - with_new).sum(axis=1)[:, None] - without_old @ owned.astype(np.float64)
        gains[medoids] = -np.inf
        frame, place = divmod(_first(gains.ravel()), len(medoids))
        if gains[frame, place] <= TIE:
            break
        medoids[place] = frame
        medoids.sort()
    return [int(medoid) for medoid in medoids]


def _first(values: Floats) -> int:
    """Return the first index of the largest value, within the tie tolerance."""
    return int(np.argmax(values >= values.max() - TIE))


ALGORITHMS: Mapping[str, Callable[[Floats, int], list[int]]] = {"kcenter": kcenter, "kmedoids": kmedoids}
