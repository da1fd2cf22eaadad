"""Random numbers of a study: they depend on seed and study id alone, not on machine or NumPy version."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

T = TypeVar("T")

_WEYL = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: its multiples spread evenly over 2^64


def study_seed(seed: int, study_id: str) -> str:
    """Return the seed of a study: SHA-256 of `global seed|study_id` (protocol 10.4)."""
    return hashlib.sha256(f"{seed}|{study_id}".encode()).hexdigest()


def spread(seed: int, number: int) -> float:
    """Return point `number` in [0, 1) of a sequence with evenly spread prefixes."""
    return ((_start(seed) + number * _WEYL) % 2**64) / 2**64


@lru_cache(maxsize=8)
def _start(seed: int) -> int:
    return int(study_seed(seed, "classes")[:16], 16)


def pick(point: float, weights: Sequence[float]) -> tuple[int, float]:
    """Return the index of the weight under a point of [0, 1), and the point's position in it, in [0, 1)."""
    place = point * sum(weights)
    for index, weight in enumerate(weights):
        if place < weight:
            return index, place / weight
        place -= weight
    return len(weights) - 1, 0.0


class Draws:
    """A stream of random numbers for one study and one attempt."""

    def __init__(self, seed: str, attempt: int) -> None:
        digest = hashlib.sha256(f"{seed}|{attempt}".encode()).digest()
        self._bits = np.random.Philox(key=np.frombuffer(digest[:16], dtype="<u8"))

    def unit(self) -> float:
        """Return a number in [0, 1)."""
        return (int(self._bits.random_raw()) >> 11) / 2**53

    def between(self, low: float, high: float) -> float:
        """Return a number in [low, high), rounded to 1e-6 so that it prints the same on every machine."""
        return round(low + (high - low) * self.unit(), 6)

    def chance(self, share: float) -> bool:
        return self.unit() < share

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[int(self.unit() * len(choices))]
