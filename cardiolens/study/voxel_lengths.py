"""Voxel lengths of a NIfTI header by the places that declare them, and whether they agree.

The columns of the sform are one place, `pixdim` is the other; the qform takes its lengths from `pixdim`. Some
writers left unit columns in the sform beside true lengths in `pixdim` (ACDC and EMIDEC), so neither is
believed against the other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

UNITS_MM = {0: 1.0, 1: 1000.0, 2: 1.0, 3: 0.001}  # NIfTI's codes of metre, mm, micron; 0: not declared
ALIKE = 0.01  # largest relative difference of two lengths that count as equal
_TURNED_MM = 1.0  # largest distance of a voxel by the two transforms

Lengths = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class VoxelLengths:
    """Lengths of the first three axes in mm by place; None where the place declares none."""

    sform: Lengths | None
    pixdim: Lengths | None
    turned: bool = False  # sform and qform agree on the lengths and place the voxels differently
    single: tuple[bool, bool, bool] = (
        False,
        False,
        False,
    )  # axes of one voxel, whose length measures nothing

    @property
    def contradicted(self) -> bool:
        """Whether sform and pixdim declare different lengths."""
        if self.sform is None or self.pixdim is None:
            return False
        return not self.equal(self.sform, self.pixdim)

    def equal(self, first: Lengths, second: Lengths) -> bool:
        """Return whether two triples are alike along the axes of several voxels."""
        pairs = zip(first, second, self.single, strict=True)
        return all(single or math.isclose(a, b, rel_tol=ALIKE) for a, b, single in pairs)

    @property
    def proposal(self) -> Lengths | None:
        """The more credible lengths: unit lengths are a writer's default; else those of the sform."""
        places = [lengths for lengths in (self.sform, self.pixdim) if lengths is not None]
        return next((lengths for lengths in places if lengths != (1.0, 1.0, 1.0)), (*places, None)[0])

    @property
    def words(self) -> str:
        """What each place says."""
        places = (("sform", self.sform), ("pixdim", self.pixdim))
        return ", ".join(f"{name} {in_words(lengths)}" for name, lengths in places if lengths is not None)


UNTOLD = VoxelLengths(None, None)


def in_words(lengths: Sequence[float]) -> str:
    """Return lengths as `1.5 x 1.5 x 10 mm`."""
    return " x ".join(f"{length:.4g}" for length in lengths) + " mm"


def voxel_lengths(header: Any) -> VoxelLengths:
    """Return the voxel lengths that nibabel's header declares."""
    unit = UNITS_MM.get(int(header["xyzt_units"]) & 7)
    shape = [*map(int, header.get_data_shape()), 1, 1, 1][:3]
    single = (shape[0] == 1, shape[1] == 1, shape[2] == 1)
    if unit is None:
        return VoxelLengths(None, None, single=single)
    has_sform = int(header["sform_code"]) > 0
    sform = np.asarray(header.get_sform(), np.float64) if has_sform else None
    lengths = VoxelLengths(
        sform=None if sform is None else _lengths(np.linalg.norm(sform[:3, :3], axis=0), unit),
        pixdim=_lengths(np.abs(np.asarray(header["pixdim"][1:4], np.float64)), unit),
        single=single,
    )
    if sform is None or int(header["qform_code"]) == 0 or lengths.contradicted:
        return lengths
    return VoxelLengths(lengths.sform, lengths.pixdim, _is_turned(header, sform, unit), single)


def _lengths(edges: Any, unit: float) -> Lengths | None:
    if not (np.isfinite(edges).all() and (edges > 0).all()):
        return None
    i, j, k = (float(f"{float(edge) * unit:.6g}") for edge in edges)  # headers store 24-bit precision
    return i, j, k


def _is_turned(header: Any, sform: Any, unit: float) -> bool:
    try:
        qform = np.asarray(header.get_qform(), np.float64)
    except Exception:  # noqa: BLE001 - nibabel raises several kinds for quaternions that are none
        return False
    corners = np.array([[0, 0, 0, 1], [32, 0, 0, 1], [0, 32, 0, 1], [0, 0, 1, 1]]).T
    return bool(np.abs((sform - qform) @ corners).max() * unit > _TURNED_MM)
