"""Slices and phases: how stored frames fill them (protocol 1.2), and what selectors know of a study."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import pyarrow as pa
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.study.anatomy import Anatomy, SliceAxis, heart

Order = Literal["slice_major", "phase_major", "static"]

_COLUMNS = (
    *("volume_id", "sequence", "view", "n_slices", "n_phases"),
    *("ed_phase", "es_phase", "t_on", "t_peak"),
)  # of `volumes`, taken as they are


class Layout(NamedTuple):
    """The slices and phases that the stored frames of a volume fill."""

    n_slices: int
    n_phases: int
    phase_major: bool = False  # whether all slices of a phase stand together, as in a file of four axes

    def grid(self, frames: NDArray[Any]) -> NDArray[Any]:
        """Return a view of stored frames by slice and phase, which become the first two axes."""
        if self.phase_major:
            return frames.reshape(self.n_phases, self.n_slices, *frames.shape[1:]).swapaxes(0, 1)
        return frames.reshape(self.n_slices, self.n_phases, *frames.shape[1:])


def even(n: int, m: int) -> tuple[int, ...]:
    """Return m of n indices, evenly spread, in integer arithmetic (protocol 5.2)."""
    if m >= n:
        return tuple(range(n))
    return tuple(((2 * i + 1) * n) // (2 * m) for i in range(m))


def resolve(shape: Sequence[int], order: Order, n_slices: int | None, n_phases: int | None) -> Layout:
    """Return the declared layout of a stored shape of 3 or 4 axes.

    In a true 4D shape axis 2 is the slice and axis 3 the phase, whatever `order` says. InputError if
    declaration and shape disagree, or if nothing declares the number of phases.
    """
    n_frames = math.prod(shape[2:])
    if len(shape) == 4:
        grid = shape[2], shape[3]
    elif order == "static":
        grid = n_frames, 1
    elif n_slices is None and n_phases is None:
        raise InputError(
            f"layout_unresolved: nothing says how many of its {n_frames} frames are phases; expected "
            "layout.n_slices and layout.n_phases; declare them in study.json"
        )
    else:
        grid = n_slices or n_frames // (n_phases or 1), n_phases or n_frames // (n_slices or 1)
    size = n_slices or grid[0], n_phases or grid[1]
    if math.prod(grid) != n_frames or size != grid:
        raise InputError(
            f"layout_mismatch: the volume holds {n_frames} frames; expected n_slices x n_phases = "
            f"{size[0]} x {size[1]} frames; correct layout or re-export the volume"
        )
    return Layout(*grid, phase_major=len(shape) == 4 or order == "phase_major")


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
