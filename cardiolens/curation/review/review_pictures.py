"""Image loops of a study for reviewers: all frames that models may see, optionally with masks."""

import io
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.curation.review.review_items import Item
from cardiolens.protocol.select.route import Route, resolve
from cardiolens.study.displayed import displayed_volumes
from cardiolens.study.manifest import Study
from cardiolens.study.overlay import Overlay, read_overlay
from cardiolens.study.structure import VolumeStructure, structures

log = logging.getLogger(__name__)

COLUMNS = 8  # phases of a slice in one row of its sheet
_KEPT = 6  # studies in memory


@dataclass(frozen=True)
class Loop:
    """One volume: structure, frames in canonical order, and mask."""

    structure: VolumeStructure
    frames_FHW: NDArray[np.uint8]
    overlay: Overlay | None

    def told(self) -> dict[str, Any]:
        """Return the facts with which the page draws the loop."""
        one = self.structure
        _, height, width = self.frames_FHW.shape
        return {
            "id": one.volume_id,
            "name": f"{one.sequence} {one.view}",
            "slices": one.n_slices,
            "phases": one.n_phases,
            "height": height,
            "width": width,
            "columns": min(COLUMNS, one.n_phases),
            "ed": one.ed_phase,
            "es": one.es_phase,
            "mask": self.overlay is not None,
        }

    def sheet(self, rank: int, *, masked: bool) -> bytes:
        """Draw all phases of a slice into one PNG, row by row."""
        from PIL import Image

        first = self.structure.idx(rank, 0)
        places = range(first, first + self.structure.n_phases)
        frames = [self.frames_FHW[idx] for idx in places]
        if masked and self.overlay is not None:
            frames = [self.overlay.on(frame, idx) for frame, idx in zip(frames, places, strict=True)]
        columns = min(COLUMNS, len(frames))
        frames += [np.zeros_like(frames[0])] * (-len(frames) % columns)
        rows = [np.concatenate(frames[k : k + columns], axis=1) for k in range(0, len(frames), columns)]
        png = io.BytesIO()
        Image.fromarray(np.concatenate(rows, axis=0)).save(png, "PNG", compress_level=1)
        return png.getvalue()


@dataclass
class Pictures:
    """Loops of all studies, with a cache of the last few."""

    studies: Mapping[str, Study]
    windows: Windows = field(default_factory=Windows)
    kept: dict[str, Mapping[str, Loop] | str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def loops(self, study_id: str) -> Mapping[str, Loop] | str:
        """Return a study's loops by volume, or a message if the images cannot be read."""
        with self.lock:
            cached = self.kept.pop(study_id, None)
            if cached is None:
                try:
                    cached = _loops(self.studies[study_id], self.windows)
                except InputError as error:
                    log.warning("%s: the images cannot be read: %s", study_id, error)
                    cached = f"the images cannot be read: {error}"
            self.kept[study_id] = cached
            while len(self.kept) > _KEPT:
                del self.kept[next(iter(self.kept))]
            return cached

    def routed(self, item: Item) -> tuple[Sequence[Loop], str]:
        """Return the loops for a question, and a remark if its views are missing or substituted."""
        study_loops = self.loops(item.question.study_id)
        if isinstance(study_loops, str):
            return (), study_loops
        volumes = tuple(loop.structure for loop in study_loops.values())
        routed = resolve(volumes, Route.of(item.subtask))
        if routed.skipped is None:
            substitutions = [flag for flag in routed.flags if flag.startswith("substituted")]
            remark = "the views of this question are missing; others replace them" if substitutions else ""
            return [study_loops[volume.volume_id] for volume in routed.volumes], remark
        remark = "the study has no view of this question; all its views are shown"
        return list(study_loops.values()), remark


def _loops(study: Study, windows: Windows) -> Mapping[str, Loop]:
    rows, frames = [], {}
    for volume in displayed_volumes(study, windows):
        rows.append(volume.row)
        frames[str(volume.row["volume_id"])] = _stack(volume.row, volume.frames)
    volumes_of = structures(pa.Table.from_pylist(rows), study.anatomy)[study.study_id].volumes
    manifests = {volume.volume_id: volume for volume in study.manifest.volumes}
    by_id = {str(row["volume_id"]): row for row in rows}
    return {
        name: Loop(structure, frames[name], read_overlay(study, manifests[name], by_id[name]))
        for name, structure in volumes_of.items()
    }


def _stack(row: Mapping[str, Any], frames: pa.Table) -> NDArray[np.uint8]:
    size = int(row["height"]), int(row["width"])
    return np.stack(
        [np.frombuffer(content, np.uint8).reshape(size) for content in frames["pixels"].to_pylist()]
    )
