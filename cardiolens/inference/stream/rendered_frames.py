"""Rendered frames of a study at its replica: those of its requests, and more when readers ask."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cardiolens.inference.stream.messages import PictureRow, pictures_of
from cardiolens.protocol.dialogue.pending import Place

LoadVolume = Callable[[str, str], Mapping[int, PictureRow]]
"""Read and render all frames of a volume, given study_id and volume_id; rows by idx."""


class StudyPictures:
    """Frames by key while a study is in flight; a volume is read when a reader asks for one of its frames.

    The frames that a reader will choose are unknown when the study is loaded, and all would be too many.
    """

    def __init__(self, study_id: str, rows: Sequence[PictureRow], load: LoadVolume) -> None:
        self._study_id = study_id
        self._load = load
        self._parts = [pictures_of(rows)]
        self._holding = dict.fromkeys((row["key"] for row in rows), 0)  # index in `_parts` by key
        self._volumes: dict[str, asyncio.Future[Mapping[int, str]]] = {}  # by volume_id: key by idx

    def __call__(self, key: str) -> np.ndarray:
        return self._parts[self._holding[key]](key)

    async def keys_of(self, places: Sequence[Place]) -> tuple[str, ...]:
        """Load the volumes of frames if necessary, and return the frames' keys."""
        for volume_id in dict.fromkeys(place.volume_id for place in places):
            if volume_id not in self._volumes:
                self._volumes[volume_id] = asyncio.ensure_future(self._read(volume_id))
            await asyncio.shield(self._volumes[volume_id])
        return tuple(self._volumes[place.volume_id].result()[place.idx] for place in places)

    async def _read(self, volume_id: str) -> Mapping[int, str]:
        rows = await asyncio.to_thread(self._load, self._study_id, volume_id)
        self._parts.append(pictures_of(list(rows.values())))
        for row in rows.values():
            self._holding.setdefault(row["key"], len(self._parts) - 1)
        return {idx: row["key"] for idx, row in rows.items()}
