"""Acquisition structure of a study: the only facts about the study that a selector may use."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from cardiolens.study.anatomy import Anatomy, SliceAxis, heart

_COLUMNS = (
    *("volume_id", "sequence", "view", "n_slices", "n_phases"),
    *("ed_phase", "es_phase", "t_on", "t_peak"),
)  # of `volumes`, taken as they are


@dataclass(frozen=True, slots=True)
class VolumeStructure:
    """Slices and phases of one volume in canonical ranks.

    Slice 0 of a short axis is the most basal; slices of long axes are in stored order. The anatomy says what
    sequence and view mean.
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
    anatomy: Anatomy = field(default_factory=heart, repr=False)

    def __hash__(self) -> int:
        """Hash only the fields that usually differ.

        Structures are looked up for every request, and hashing every field is slow.
        """
        return hash((self.volume_id, self.n_slices, self.n_phases, self.es_phase))

    @property
    def n_frames(self) -> int:
        return self.n_slices * self.n_phases

    @property
    def over_time(self) -> str:
        """Meaning of the phases: `cycle`, `first_pass` or `nothing`, also for case images."""
        kind = self.anatomy.sequences.get(self.sequence)
        return "nothing" if kind is None else kind.over_time

    @property
    def slice_axis(self) -> SliceAxis | None:
        """The axis along which the slices are counted; None if the layers have no order."""
        view = self.anatomy.views.get(self.view)
        return None if view is None else view.slices

    def idx(self, slice_rank: int, phase: int) -> int:
        """Return the canonical index of a frame: slice_rank * n_phases + phase."""
        return slice_rank * self.n_phases + phase


@dataclass(frozen=True, slots=True)
class StudyStructure:
    """The volumes of one study by volume_id."""

    study_id: str
    volumes: Mapping[str, VolumeStructure]


def structures(volumes: pa.Table, anatomy: Anatomy | None = None) -> dict[str, StudyStructure]:
    """Return one structure per study, from rows of the `volumes` table, in order of study_id.

    `anatomy` is that of the protocol; by default the heart's.
    """
    organ = anatomy or heart()
    by_study: dict[str, dict[str, VolumeStructure]] = {}
    for row in volumes.sort_by([("study_id", "ascending"), ("volume_id", "ascending")]).to_pylist():
        volume = VolumeStructure(
            **{name: row[name] for name in _COLUMNS},
            key_layers=tuple(row["key_layers"]),
            levels_known=row["spatial_order"] != "unknown",
            anatomy=organ,
        )
        by_study.setdefault(row["study_id"], {})[volume.volume_id] = volume
    return {study_id: StudyStructure(study_id, volumes) for study_id, volumes in by_study.items()}
