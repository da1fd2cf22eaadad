"""Routes of the case viewer with its frames; read-only."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.show.local_server import LocalServer, Reply, Request, Site, png_reply, text_reply
from cardiolens.show.page.case_viewer.pictures import (
    FRAMES,
    MASKED_SLICES,
    MASKS,
    SLICES,
    Picture,
    encoded,
    over,
    overlay_of,
    parse_name,
    tiled,
)
from cardiolens.show.page.case_viewer.study_layout import BLOCK, columns_of
from cardiolens.study.overlay import Overlay
from cardiolens.study.shards import read_frames, read_volumes, shaped

_VOLUMES_KEPT = 8  # in memory: a large cine has 100 MB
_reading = Lock()  # a volume that several pictures need is read once


@dataclass(frozen=True)
class Viewer:
    """Content that may be read: the viewer's page, scripts with cases, and frames of the run's studies.

    `script` returns the script at a path, with the words that are searched; None where there is none.
    """

    index: str
    script: Callable[[str, str], str | None]
    store: Path
    folder: Path  # of the studies, for their masks
    studies: tuple[str, ...]

    def read(self, request: Request) -> Reply | None:
        """What stands at an address; None where nothing may be read."""
        parts = list(request.parts)
        if parts in ([""], ["index.html"]):
            return text_reply("html", self.index)
        if parts[0] in (FRAMES, MASKS, SLICES, MASKED_SLICES):
            return png_reply(self._picture(parts))
        script = self.script("/".join(parts), request.query.get("words", ""))
        return None if script is None else text_reply("js", script)

    def _picture(self, parts: list[str]) -> bytes | None:
        """One frame, or a block of phases of a slice."""
        is_block = parts[0] in (SLICES, MASKED_SLICES)
        place = parse_name(parts, 2 if is_block else 1)
        if place is None or place[0] >= len(self.studies):
            return None
        number, volume_id, numbers = place
        masks = self.folder if parts[0] in (MASKS, MASKED_SLICES) else None
        try:
            with _reading:
                volume = _volume(self.store, self.studies[number], volume_id)
                overlay = _overlay(self.store, masks, self.studies[number], volume_id) if masks else None
        except InputError:
            return None
        indices = volume.block(*numbers) if is_block else volume.frame(*numbers)
        images = [
            volume.images[idx] if overlay is None else over(volume.images[idx], overlay, idx)
            for idx in indices
        ]
        if not images:
            return None
        return encoded(tiled(images, columns_of(volume.n_phases)) if is_block else images[0], fast=True)


@dataclass(frozen=True, slots=True)
class _Volume:
    images: tuple[Picture, ...]  # by canonical index
    n_phases: int

    def frame(self, idx: int) -> range:
        return range(idx, idx + 1) if idx < len(self.images) else range(0)

    def block(self, rank: int, number: int) -> range:
        """Indices of a block of phases of a slice."""
        first, end = rank * self.n_phases, (rank + 1) * self.n_phases
        return range(first + number * BLOCK, min(first + (number + 1) * BLOCK, end, len(self.images)))


@lru_cache(maxsize=_VOLUMES_KEPT)
def _volume(store: Path, study: str, volume_id: str) -> _Volume:
    """All frames of one volume."""
    volumes = _volumes(store)
    own = volumes.filter(
        pc.and_(pc.equal(volumes["study_id"], study), pc.equal(volumes["volume_id"], volume_id))
    )
    if not own.num_rows:
        raise InputError(f"{study} has no volume {volume_id}")
    n_phases, n_slices = own["n_phases"][0].as_py(), own["n_slices"][0].as_py()
    frames = read_frames(store, own, {volume_id: range(n_slices * n_phases)})
    images = (shaped(row["pixels"], row["height"], row["width"], row["channels"]) for row in frames)
    return _Volume(tuple(images), n_phases)


@lru_cache(maxsize=_VOLUMES_KEPT)
def _overlay(store: Path, masks: Path, study: str, volume_id: str) -> Overlay | None:
    return overlay_of(masks, _volumes(store), study, volume_id)


@lru_cache(maxsize=1)
def _volumes(store: Path) -> pa.Table:
    return read_volumes(store)


def viewer_server(viewer: Viewer, port: int = 0) -> LocalServer:
    """Make a server that is not yet running; port 0 takes a free port."""
    return LocalServer(Site(viewer.read, inline=True), port)
