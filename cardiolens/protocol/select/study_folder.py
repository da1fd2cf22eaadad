"""Study folders as selectors see them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cardiolens.config.dataset import Windows
from cardiolens.protocol.select.feature_store import StudyFeatures
from cardiolens.protocol.select.features import volume_features
from cardiolens.study.group import DisplayedVolume, displayed_volumes
from cardiolens.study.manifest import Study
from cardiolens.study.structure import StudyStructure, structures

Pixels = Mapping[str, NDArray[np.uint8]]  # (frames, rows, columns) by volume_id


@dataclass(frozen=True, slots=True)
class LookedAt:
    """A study's structure and the pixels of its frames as displayed."""

    structure: StudyStructure
    pixels: Pixels

    def features(self) -> StudyFeatures:
        """Compute the study's features for data-driven selectors."""
        volumes = self.structure.volumes
        vectors = {
            name: volume_features(frames, volumes[name].n_phases, cyclic=volumes[name].over_time == "cycle")
            for name, frames in self.pixels.items()
        }
        return StudyFeatures(vectors, next(iter(volumes.values())).anatomy)


def look_at(study: Study, windows: Windows) -> LookedAt:
    """Read a study with all pixels."""
    rows, pixels = [], {}
    for volume in displayed_volumes(study, windows):  # one in memory at a time
        rows.append(volume.row)
        pixels[str(volume.row["volume_id"])] = _frames(volume)
    return LookedAt(structures(pa.Table.from_pylist(rows), study.anatomy)[study.study_id], pixels)


def _frames(volume: DisplayedVolume) -> NDArray[np.uint8]:
    height, width = (int(str(volume.row[side])) for side in ("height", "width"))
    joined = b"".join(volume.frames.sort_by("idx")["pixels"].to_pylist())
    return np.frombuffer(joined, np.uint8).reshape(-1, height, width)
