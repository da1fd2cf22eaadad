"""What an engine makes of a frame, kept for the next requests that show it."""

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from cardiolens.inference.engine.ask import Pictures

_Made = TypeVar("_Made")


class FrameCache(Generic[_Made]):
    """What was made of frames, by key; of more than `most_bytes`, what was used last."""

    def __init__(
        self, make: Callable[[np.ndarray], _Made], n_bytes: Callable[[_Made], int], most_bytes: int
    ) -> None:
        self.made = 0  # so often so far
        self._make, self._n_bytes, self._room = make, n_bytes, most_bytes
        self._kept: dict[str, _Made] = {}  # the most recently used last

    def of(self, key: str, pictures: Pictures) -> _Made:
        """Return what is made of the frame of a key."""
        entry = self._kept.pop(key, None)
        if entry is None:
            entry = self._make(pictures(key))
            self.made += 1
            self._room -= self._n_bytes(entry)
        self._kept[key] = entry
        while self._room < 0 and len(self._kept) > 1:
            self._room += self._n_bytes(self._kept.pop(next(iter(self._kept))))
        return entry
