"""Swap test: patients are swapped between arms and the statistic is recomputed (protocol 16.6)."""

import functools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.statistic import Key

Coins = NDArray[np.float32]  # (patient, swap): 1 where a patient stays, 0 where it changes arms
StatisticsOfSums = Callable[[Floats], dict[Key, Floats]]  # from sums (cell, unit)

SWAPS = 10_000
# the tail of a sum with random signs is at most so many times that of a normal one (Pinelis 1994)
_PINELIS = 3.178


@functools.lru_cache(maxsize=2)  # every pair of arms of a cohort asks for the same
def coins(patients: int, seed: int, swaps: int = SWAPS) -> Coins:
    """Draw seeded swaps of whole patients."""
    flips = np.random.default_rng(seed).integers(0, 2, (swaps, patients), dtype=np.int8)
    return np.ascontiguousarray(flips.T, np.float32)


def swap_p(cells: Floats, versus: Floats, statistics_of: StatisticsOfSums, swaps: Coins) -> dict[Key, float]:
    """Two-sided p-values of the difference of every statistic computed from sums of cells.

    p is (1 + as extreme) / (1 + swaps). Where no swap is as extreme it is the bound of Pinelis on the tail,
    since 10,000 swaps could not pass Holm over more than 500 comparisons. A swap that leaves a statistic
    undefined counts as extreme; where nothing differs p is 1.
    """
    change, total = cells - versus, (cells + versus).sum(axis=1, keepdims=True)
    moved = change.any(axis=0)
    first = np.repeat(versus.sum(axis=1, keepdims=True), swaps.shape[1], axis=1)
    rows = np.flatnonzero(change.any(axis=1))
    # whole numbers below 2**24, so float32 is exact
    first[rows] += change[np.ix_(rows, moved)].astype(np.float32) @ swaps[moved]
    ours, theirs = (
        statistics_of(cells.sum(axis=1, keepdims=True)),
        statistics_of(versus.sum(axis=1, keepdims=True)),
    )
    ours_swapped, theirs_swapped = statistics_of(first), statistics_of(total - first)
    fewest = 2.0 ** (1 - int(moved.sum()))
    return {
        key: _p(float((ours[key] - theirs[key])[0]), ours_swapped[key] - theirs_swapped[key], fewest)
        for key in ours
    }


def _p(observed: float, swapped: Floats, fewest: float) -> float:
    if np.isnan(observed):
        return float("nan")
    below = np.abs(swapped) < abs(observed) * (1 - 1e-9)  # those that differ by rounding only are equal
    extreme = len(swapped) - int(below.sum())
    p = (1 + extreme) / (1 + len(swapped))
    return p if extreme else min(p, max(fewest, _tail_bound(observed, swapped)))


def _tail_bound(observed: float, swapped: Floats) -> float:
    from scipy import stats

    spread = float(np.sqrt(np.mean(swapped**2)))
    return 2 * _PINELIS * float(stats.norm.sf(abs(observed) / spread)) if spread else 0.0


def stack(parts: Sequence[Floats]) -> Floats:
    """Stack the cells of several parts into one matrix."""
    return np.concatenate(parts) if parts else np.zeros((0, 0))


def split(cells: Floats, sizes: Sequence[int]) -> list[Floats]:
    """Split a matrix of cells into its parts."""
    return np.split(cells, np.cumsum(sizes)[:-1])
