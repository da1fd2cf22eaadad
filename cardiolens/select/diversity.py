"""Choosing frames that differ: k-centre and k-medoids on a matrix of distances (specification 6)."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TIE = 1e-9
_ROUNDS = 20
_SAME = 1e-12  # squared distances below it are rounding errors of equal frames


def distances(features: NDArray[np.floating]) -> Floats:
    """Euclidean distances of all pairs of rows, (frames, frames) in float64."""
    rows = features.astype(np.float64)
    squares = np.einsum("fd,fd->f", rows, rows)
    squared: Floats = squares[:, None] + squares - 2 * (rows @ rows.T)
    np.fill_diagonal(squared, 0)
    distance: Floats = np.sqrt(np.where(squared < _SAME, 0, squared))
    return distance


def kcenter(distance: Floats, k: int) -> list[int]:
    """The medoid, then repeatedly the frame farthest from all chosen, in that order; ties to the first."""
    chosen = [_first(-distance.sum(axis=1))] if k > 0 else []
    nearest = distance[chosen[0]].copy() if chosen else distance[:0]
    while len(chosen) < min(k, len(distance)):
        nearest[chosen] = -1  # a duplicate is taken only once nothing else is left, and never a frame twice
        chosen.append(_first(nearest))
        np.minimum(nearest, distance[chosen[-1]], out=nearest)
    return chosen


def kmedoids(distance: Floats, k: int) -> list[int]:
    """From the k-centre frames by best single swaps, until none gains or 20 rounds are done; ascending."""
    chosen = np.array(sorted(kcenter(distance, k)), np.int64)
    for _ in range(_ROUNDS):
        gains = _swap_gains(distance, chosen)
        swap = _first(gains.ravel())
        frame, place = divmod(swap, len(chosen))
        if gains[frame, place] <= TIE:
            break
        chosen[place] = frame
        chosen.sort()
    return [int(frame) for frame in chosen]


ALGORITHMS: Mapping[str, Callable[[Floats, int], list[int]]] = {"kcenter": kcenter, "kmedoids": kmedoids}


def _first(values: Floats) -> int:
    """The first index whose value is the largest, within the tie tolerance."""
    return int(np.argmax(values >= values.max() - TIE))


def _swap_gains(distance: Floats, chosen: NDArray[np.int64]) -> Floats:
    """By how much the summed distance to the nearest medoid falls if a frame replaces a medoid.

    (frames, medoids); all swaps at once, after Schubert and Rousseeuw 2021 (FastPAM1).
    """
    to_medoids = distance[:, chosen]
    own = to_medoids.argmin(axis=1)
    nearest = to_medoids.min(axis=1)
    second = _second_smallest(to_medoids)
    closer = np.maximum(nearest - distance, 0)  # row: frame as new medoid, column: whom it serves
    left_over = np.minimum(distance, second) - nearest + closer
    served_by = (own[:, None] == np.arange(len(chosen))).astype(np.float64)
    gains: Floats = closer.sum(axis=1)[:, None] - left_over @ served_by
    gains[chosen] = -np.inf
    return gains


def _second_smallest(values: Floats) -> Floats:
    if values.shape[1] == 1:
        return np.full(len(values), np.inf)
    smallest: Floats = np.partition(values, 1, axis=1)[:, 1]
    return smallest
