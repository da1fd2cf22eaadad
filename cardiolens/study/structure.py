"""Acquisition structure of a study: the only facts about the study that a selector may use."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class VolumeStructure:
    """Slices and phases of one volume in canonical ranks.

    Slice 0 of a short axis is the most basal; slices of long axes are in stored order.
    """

    volume_id: str  # view code: cine_sax, cine_4ch, lge_sax, ...
    sequence: str
    view: str
    n_slices: int
    n_phases: int
    ed_phase: int = 0
    es_phase: int = 0
    key_layers: tuple[int, ...] = ()  # basal, mid, apical
    levels_known: bool = True  # False if the slice order is undeclared: captions name no level
    t_on: int | None = None
    t_peak: int | None = None

    def __hash__(self) -> int:
        """Hash only the fields that usually differ.

        Structures are looked up for every request, and hashing all eleven fields is slow.
        """
        return hash((self.volume_id, self.n_slices, self.n_phases, self.es_phase))

    @property
    def n_frames(self) -> int:
        return self.n_slices * self.n_phases

    def idx(self, slice_rank: int, phase: int) -> int:
        """Return the canonical index of a frame: slice_rank * n_phases + phase."""
        return slice_rank * self.n_phases + phase


@dataclass(frozen=True, slots=True)
class StudyStructure:
    """The volumes of one study by volume_id."""

    study_id: str
    volumes: Mapping[str, VolumeStructure]


def structures(volumes: pa.Table) -> dict[str, StudyStructure]:
    """Return one structure per study, from rows of the `volumes` table, in order of study_id."""
    by_study: dict[str, dict[str, VolumeStructure]] = {}
    for row in volumes.sort_by([("study_id", "ascending"), ("volume_id", "ascending")]).to_pylist():
        volume = VolumeStructure(
            volume_id=row["volume_id"],
            sequence=row["sequence"],
            view=row["view"],
            n_slices=row["n_slices"],
            n_phases=row["n_phases"],
            ed_phase=row["ed_phase"],
            es_phase=row["es_phase"],
            key_layers=tuple(row["key_layers"]),
            levels_known=row["spatial_order"] != "unknown",
            t_on=row["t_on"],
            t_peak=row["t_peak"],
        )
        by_study.setdefault(row["study_id"], {})[volume.volume_id] = volume
    return {study_id: StudyStructure(study_id, volumes) for study_id, volumes in by_study.items()}
