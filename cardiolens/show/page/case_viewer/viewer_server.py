"""Routes of the case viewer with its frames; read-only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import parse_qs

import pyarrow as pa

from cardiolens.base.errors import InputError
from cardiolens.show.local_server import LocalServer, Reply, Request, Site, png_reply, text_reply
from cardiolens.show.page.case_viewer.pictures import FRAMES, MASKS, overlay_of, parse_name, png_of
from cardiolens.study.shards import read_volumes


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
        if parts[0] in (FRAMES, MASKS):
            return png_reply(self._picture(parts))
        script = self.script("/".join(parts), "".join(parse_qs(request.query).get("words", [])))
        return None if script is None else text_reply("js", script)

    def _picture(self, parts: list[str]) -> bytes | None:
        place = parse_name(parts)
        if place is None or place[0] >= len(self.studies):
            return None
        number, volume_id, idx = place
        try:
            masked = self.folder if parts[0] == MASKS else None
            return _volume(self.store, self.studies[number], volume_id, masked).get(idx)
        except InputError:
            return None


@lru_cache(maxsize=64)
def _volume(store: Path, study: str, volume_id: str, masks: Path | None) -> Mapping[int, bytes]:
    """All frames of one volume as PNG pictures, by index; with its mask over them, where `masks` has it."""
    own = _volumes(store)
    rows = [row for row in own.to_pylist() if (row["study_id"], row["volume_id"]) == (study, volume_id)]
    frames = [(volume_id, idx) for row in rows for idx in range(row["n_slices"] * row["n_phases"])]
    overlay = overlay_of(masks, own, study, volume_id) if masks else None
    overlays = {volume_id: overlay} if overlay else {}
    return {idx: picture for (_, idx), picture in png_of(store, own, study, frames, overlays).items()}


@lru_cache(maxsize=1)
def _volumes(store: Path) -> pa.Table:
    return read_volumes(store)


def viewer_server(viewer: Viewer, port: int = 0) -> LocalServer:
    """Make a server that is not yet running; port 0 takes a free port."""
    return LocalServer(Site(viewer.read, inline=True), port)
