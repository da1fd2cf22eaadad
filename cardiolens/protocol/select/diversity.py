"""Diverse frames from a distance matrix: k-centre, k-medoids, relevance (protocol 6)."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TIE = 1e-9
_ROUNDS = 20
_LAMBDA = 0.5  # weight of relevance to the question in maximal marginal relevance
_SAME = 1e-12  # smaller squared distances are rounding errors of equal frames


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
    """Improve k-centre frames by best single swaps until none gains, at most 20; sorted ascending."""
    swaps = _Swaps(distance, kcenter(distance, k))
    for _ in range(_ROUNDS):
        frame, place, gain = swaps.best()
        if gain <= TIE:
            break
        swaps.swap(frame, place)
    return sorted(swaps.medoids.tolist())


ALGORITHMS: Mapping[str, Callable[[Floats, int], list[int]]] = {"kcenter": kcenter, "kmedoids": kmedoids}


def relevant(distance: Floats, near: Floats, k: int) -> list[int]:
    """Choose by maximal marginal relevance: repeatedly a frame near the question and unlike the chosen.

    `distance` is between unit vectors, `near` the cosine of each frame and the question; ties go to the
    first. (Carbonell and Goldstein 1998.)
    """
    alike = 1 - distance**2 / 2
    most_alike = np.zeros(len(near))
    chosen: list[int] = []
    while len(chosen) < min(k, len(near)):
        worth = _LAMBDA * near - (1 - _LAMBDA) * most_alike
        worth[chosen] = -np.inf
        chosen.append(_first(worth))
        most_alike = alike[chosen].max(axis=0)
    return chosen


def _first(values: Floats) -> int:
    """Return the first index of the largest value, within the tie tolerance."""
    return int(np.argmax(values >= values.max() - TIE))


class _Swaps:
    """Gains of swapping a medoid for a frame: the fall of the summed distance to the nearest medoid.

    The sums of Schubert and Rousseeuw 2021 (FastPAM1), updated incrementally: a swap recomputes only the
    frames whose two nearest medoids changed.
    """

    def __init__(self, distance: Floats, medoids: list[int]) -> None:
        self.medoids = np.array(medoids, np.int64)
        self._distance = distance
        self._gain = np.zeros(len(distance))  # per new medoid: from frames closer to it
        self._loss = np.zeros((len(medoids), len(distance)))  # (removed, new medoid): from frames left over
        self._nearest = self._two_nearest()
        self._count(np.arange(len(distance)), 1)

    def best(self) -> tuple[int, int, float]:
        """Return the best new frame, the position of the medoid to replace, and the gain; ties: first."""
        places = np.argsort(self.medoids)
        gains = (self._gain - self._loss[places]).T
        gains[self.medoids] = -np.inf
        frame, place = divmod(_first(gains.ravel()), len(places))
        return frame, int(places[place]), float(gains[frame, place])

    def swap(self, frame: int, place: int) -> None:
        """Replace the medoid at a position."""
        self.medoids[place] = frame
        after = self._two_nearest()
        changed = np.flatnonzero((after != self._nearest).any(axis=0))
        self._count(changed, -1)
        self._nearest = after
        self._count(changed, 1)

    def _two_nearest(self) -> Floats:
        """Return position of and distance to the nearest medoid, and distance to the second, (3, frames)."""
        to_medoids = self._distance[self.medoids]
        cluster = to_medoids.argmin(axis=0)
        if len(to_medoids) == 1:
            return np.stack([cluster, to_medoids[0], np.full(len(cluster), np.inf)])
        nearest, second = np.partition(to_medoids, 1, axis=0)[:2]
        return np.stack([cluster, nearest, second])

    def _count(self, frames: NDArray[np.int64], sign: int) -> None:
        cluster, nearest, second = self._nearest[:, frames, None]
        distance = self._distance[frames]
        closer = np.maximum(nearest - distance, 0)
        left_over = np.minimum(distance, second) - nearest + closer
        served_by = (cluster[:, 0] == np.arange(len(self.medoids))[:, None]).astype(np.float64)
        self._gain += sign * closer.sum(axis=0)
        self._loss += sign * (served_by @ left_over)
