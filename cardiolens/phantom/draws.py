"""Random numbers of a study: they depend on seed and study id alone, not on machine or NumPy version."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


def study_seed(seed: int, study_id: str) -> str:
    """Return the seed of a study: SHA-256 of `global seed|study_id` (protocol 10.4)."""
    return hashlib.sha256(f"{seed}|{study_id}".encode()).hexdigest()


class Draws:
    """A stream of random numbers for one study and one attempt, or one volume.

    Only raw bits are drawn: NumPy keeps raw bits stable across versions, but not distributions (NEP 19).
    """

    def __init__(self, seed: str, part: int | str) -> None:
        digest = hashlib.sha256(f"{seed}|{part}".encode()).digest()
        self._bits = np.random.Philox(key=np.frombuffer(digest[:16], dtype="<u8"))

    def raw(self, count: int) -> NDArray[np.uint64]:
        """Return so many words of 64 random bits."""
        return np.asarray(self._bits.random_raw(count))

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
