"""Image loops of a study for reviewers: all frames that models may see, optionally with masks."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.curation.review.review_items import Item
from cardiolens.protocol.select.feature_store import look_at
from cardiolens.protocol.select.selection import resolve
from cardiolens.show.page.case_viewer.pictures import encoded, over, tiled
from cardiolens.study.manifest import Study
from cardiolens.study.overlay import Overlay, read_overlay
from cardiolens.study.structure import VolumeStructure

log = logging.getLogger(__name__)

COLUMNS = 8  # phases of a slice in one row of its sheet
_KEPT = 6  # studies in memory


@dataclass(frozen=True)
class Loop:
    """One volume: structure, frames in canonical order, and mask."""

    structure: VolumeStructure
    frames_FHW: NDArray[np.uint8]
    overlay: Overlay | None

    def facts(self) -> dict[str, Any]:
        """Return the facts with which the page draws the loop."""
        volume = self.structure
        _, height, width = self.frames_FHW.shape
        return {
            "id": volume.volume_id,
            "name": f"{volume.sequence} {volume.view}",
            "slices": volume.n_slices,
            "phases": volume.n_phases,
            "height": height,
            "width": width,
            "columns": min(COLUMNS, volume.n_phases),
            "ed": volume.ed_phase,
            "es": volume.es_phase,
            "mask": self.overlay is not None,
        }

    def sheet(self, rank: int, *, masked: bool) -> bytes:
        """Draw all phases of a slice into one PNG, row by row."""
        first = self.structure.idx(rank, 0)
        places = range(first, first + self.structure.n_phases)
        frames = [self.frames_FHW[idx] for idx in places]
        if masked and self.overlay is not None:
            frames = [over(frame, self.overlay, idx) for frame, idx in zip(frames, places, strict=True)]
        return encoded(tiled(frames, min(COLUMNS, len(frames))), fast=True)


class Pictures:
    """Loops of all studies; those of the last few stay in memory."""

    def __init__(self, studies: Mapping[str, Study]) -> None:
        self._studies = studies
        self._reading = threading.Lock()  # a study that several pictures need is read once
        self._loops = lru_cache(maxsize=_KEPT)(self._read)

    def loops(self, study_id: str) -> Mapping[str, Loop] | str:
        """Return a study's loops by volume, or a message if the images cannot be read."""
        with self._reading:
            return self._loops(study_id)

    def _read(self, study_id: str) -> Mapping[str, Loop] | str:
        study = self._studies[study_id]
        manifests = {manifest.volume_id: manifest for manifest in study.manifest.volumes}
        try:
            images = look_at(study, Windows())
            return {
                name: Loop(volume, images.pixels[name], read_overlay(study, manifests[name]))
                for name, volume in images.structure.volumes.items()
            }
        except InputError as error:
            log.warning("%s: the images cannot be read: %s", study_id, error)
            return f"the images cannot be read: {error}"

    def routed(self, item: Item) -> tuple[Sequence[Loop], str]:
        """Return the loops for a question, and a remark if its views are missing or substituted."""
        loops = self.loops(item.study)
        if isinstance(loops, str):
            return (), loops
        routed = resolve(tuple(loop.structure for loop in loops.values()), item.subtask)
        if routed.skipped is not None:
            return list(loops.values()), "the study has no view of this question; all its views are shown"
        is_substituted = any(flag.startswith("substituted") for flag in routed.flags)
        remark = "the views of this question are missing; others replace them" if is_substituted else ""
        return [loops[volume.volume_id] for volume in routed.volumes], remark
