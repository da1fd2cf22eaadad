"""Image loops of a study for reviewers: all frames that models may see, optionally with masks."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass
class Pictures:
    """Loops of all studies, with a cache of the last few."""

    studies: Mapping[str, Study]
    kept: dict[str, Mapping[str, Loop] | str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def loops(self, study_id: str) -> Mapping[str, Loop] | str:
        """Return a study's loops by volume, or a message if the images cannot be read."""
        with self.lock:
            if study_id not in self.kept:
                self.kept[study_id] = _loops(self.studies[study_id])
                while len(self.kept) > _KEPT:
                    del self.kept[next(iter(self.kept))]
            return self.kept[study_id]

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


def _loops(study: Study) -> Mapping[str, Loop] | str:
    try:
        seen = look_at(study, Windows())
        manifests = {manifest.volume_id: manifest for manifest in study.manifest.volumes}
        return {
            name: Loop(structure, seen.pixels[name], read_overlay(study, manifests[name]))
            for name, structure in seen.structure.volumes.items()
        }
    except InputError as error:
        log.warning("%s: the images cannot be read: %s", study.study_id, error)
        return f"the images cannot be read: {error}"
