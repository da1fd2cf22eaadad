"""Study folders as selectors see them, read with as few pixels as possible."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cardiolens.config.dataset import Windows
from cardiolens.protocol.select.feature_store import StudyFeatures
from cardiolens.protocol.select.features import Sight
from cardiolens.study.blood_pool import SHORT_AXIS_CINE, needs_cycle
from cardiolens.study.displayed import DisplayedVolume, displayed_volumes
from cardiolens.study.layout import Layout
from cardiolens.study.manifest import Study
from cardiolens.study.structure import StudyStructure, VolumeStructure, structures
from cardiolens.study.volume_manifest import VolumeManifest

Pixels = Mapping[str, NDArray[np.uint8]]  # (frames, rows, columns) by volume_id


@dataclass(frozen=True, slots=True)
class LookedAt:
    """A study's structure and the pixels of its frames as displayed."""

    structure: StudyStructure
    pixels: Pixels

    def features(self, sight: Sight) -> StudyFeatures:
        """Compute the study's features for data-driven selectors."""
        volumes = self.structure.volumes
        features_of = {
            name: sight.of_volume(frames, volumes[name].n_phases, cyclic=volumes[name].over_time == "cycle")
            for name, frames in self.pixels.items()
        }
        anatomy = next(iter(volumes.values())).anatomy
        return StudyFeatures(features_of, sight, anatomy)


def look_at(study: Study, windows: Windows) -> LookedAt:
    """Read a study with all pixels."""
    rows, pixels = [], {}
    for volume in displayed_volumes(study, windows):
        rows.append(volume.row)
        pixels[str(volume.row["volume_id"])] = _frames(volume)
    return LookedAt(structures(pa.Table.from_pylist(rows), study.anatomy)[study.study_id], pixels)


def declared_structure(study: Study, windows: Windows) -> StudyStructure:
    """Return the structure that a manifest declares; read a volume's file only for undeclared values.

    Without the file, a perfusion series of undeclared times counts as a series without a bolus (5.8).
    """
    return StudyStructure(study.study_id, dict(_volumes(study, windows)))


def _volumes(study: Study, windows: Windows) -> Iterator[tuple[str, VolumeStructure]]:
    for volume in study.manifest.volumes:
        timed = not needs_cycle(volume) and (volume.over_time != "first_pass" or volume.t_on is not None)
        if timed or not (study.folder / volume.path).exists():
            yield volume.volume_id, _declared(volume, volume.declared_layout())
        else:
            with_it = SHORT_AXIS_CINE if needs_cycle(volume) else volume.volume_id
            volumes = tuple(v for v in study.manifest.volumes if v.volume_id in (volume.volume_id, with_it))
            alone = replace(study, manifest=study.manifest.model_copy(update={"volumes": volumes}))
            yield volume.volume_id, look_at(alone, windows).structure.volumes[volume.volume_id]


def _declared(volume: VolumeManifest, layout: Layout) -> VolumeStructure:
    timing = volume.timing(layout)
    return VolumeStructure(
        volume_id=volume.volume_id,
        sequence=volume.sequence,
        view=volume.view,
        n_slices=layout.n_slices,
        n_phases=layout.n_phases,
        ed_phase=timing.ed_phase,
        es_phase=timing.es_phase,
        key_layers=timing.key_layers,
        levels_known=volume.known_order != "unknown",
        t_on=volume.t_on,
        t_peak=volume.t_peak,
        anatomy=volume.anatomy,
    )


def _frames(volume: DisplayedVolume) -> NDArray[np.uint8]:
    height, width = (int(str(volume.row[side])) for side in ("height", "width"))
    joined = b"".join(volume.frames.sort_by("idx")["pixels"].to_pylist())
    return np.frombuffer(joined, np.uint8).reshape(-1, height, width)
