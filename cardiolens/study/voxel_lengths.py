"""Voxel lengths of a NIfTI header by the places that declare them, and whether they agree.

The columns of the sform are one place, `pixdim` is the other; the qform takes its lengths from `pixdim`. Some
writers left unit columns in the sform beside true lengths in `pixdim` (ACDC and EMIDEC), so neither is
believed against the other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

UNITS_MM = {0: 1.0, 1: 1000.0, 2: 1.0, 3: 0.001}  # NIfTI's codes of metre, mm, micron; 0: not declared
ALIKE = 0.01  # largest relative difference of two lengths that count as equal
_TURNED_MM = 1.0  # largest distance of a voxel by the two transforms

_SHORTEST_MM, _LONGEST_MM = 0.1, 60.0  # of a voxel's edge
_USUAL_MM = 0.35, 10.0  # of the middle one of its edges
_LIKELY_MM = {"mm": 1.0, "cm": 10.0, "m": 1000.0, "micron": 0.001}  # units that writers use, likeliest first

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
    unit_mm: float = 1.0  # as declared
    layers: Lengths | None = (
        None  # between layers of voxels by the sform: shorter than its columns if it is sheared
    )

    @property
    def contradicted(self) -> bool:
        """Whether sform and pixdim declare different lengths."""
        if self.sform is None or self.pixdim is None:
            return False
        return not self.equal(self.sheared(self.sform, self.pixdim), self.pixdim)

    def equal(self, first: Lengths, second: Lengths) -> bool:
        """Return whether two triples are alike along the axes of several voxels."""
        pairs = zip(first, second, self.single, strict=True)
        return all(single or math.isclose(a, b, rel_tol=ALIKE) for a, b, single in pairs)

    def sheared(self, lengths: Lengths, declared: Lengths) -> Lengths:
        """Return lengths of a header, or the distance of layers where that is nearer to the declared one."""
        layers = self.layers or lengths
        i, j, k = (
            min(pair, key=lambda each: abs(each - to))
            for *pair, to in zip(lengths, layers, declared, strict=True)
        )
        return i, j, k

    @property
    def proposal(self) -> Lengths | None:
        """The more credible lengths: unit lengths are a writer's default; else those of the sform."""
        places = [lengths for lengths in (self.sform, self.pixdim) if lengths is not None]
        return next((lengths for lengths in places if lengths != (1.0, 1.0, 1.0)), (*places, None)[0])

    def in_likely_unit(self, lengths: Lengths) -> tuple[str, Lengths] | None:
        """Return the unit in which lengths are those of a body, and they in mm; None if none is.

        An empty unit is the declared one.
        """
        units = {"": self.unit_mm, **_LIKELY_MM}
        in_mm = {unit: _rounded(np.array(lengths) * mm / self.unit_mm) for unit, mm in units.items()}
        return next(((unit, likely) for unit, likely in in_mm.items() if self._is_of_body(likely)), None)

    def doubt(self, lengths: Lengths) -> str:
        """Return why lengths are of no picture of the body, with those of the likely unit; else nothing."""
        likely = self.in_likely_unit(lengths)
        if likely is not None and not likely[0]:
            return ""
        sentence = f"voxels of {in_words(lengths)} make no picture of a body"
        return (
            sentence
            if likely is None
            else f"{sentence}; in {likely[0]} they would have {in_words(likely[1])}"
        )

    def _is_of_body(self, lengths_mm: Lengths) -> bool:
        """Return whether voxels are as large as those of a picture of a body."""
        edges = sorted(mm for mm, single in zip(lengths_mm, self.single, strict=True) if not single) or [1.0]
        in_range = edges[0] >= _SHORTEST_MM and edges[-1] <= _LONGEST_MM
        return in_range and _USUAL_MM[0] <= edges[(len(edges) - 1) // 2] <= _USUAL_MM[1]

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
        layers=None if sform is None else _lengths(between_layers(sform), unit),
        pixdim=_lengths(np.abs(np.asarray(header["pixdim"][1:4], np.float64)), unit),
        single=single,
        unit_mm=unit,
    )
    if sform is None or int(header["qform_code"]) == 0 or lengths.contradicted:
        return lengths
    return replace(lengths, turned=_is_turned(header, sform, unit))


def between_layers(affine: Any) -> Any:
    """Return the distances between layers of voxels along each axis; NaN without a volume."""
    edges = np.asarray(affine, np.float64)[:3, :3].T
    faces = [np.linalg.norm(np.cross(edges[k - 2], edges[k - 1])) for k in range(3)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return abs(np.linalg.det(edges)) / np.array(faces)


def _lengths(edges: Any, unit: float) -> Lengths | None:
    if not (np.isfinite(edges).all() and (edges > 0).all()):
        return None
    return _rounded(np.asarray(edges) * unit)


def _rounded(lengths: Any) -> Lengths:
    i, j, k = (float(f"{float(length):.6g}") for length in lengths)  # headers store 24-bit precision
    return i, j, k


def _is_turned(header: Any, sform: Any, unit: float) -> bool:
    try:
        qform = np.asarray(header.get_qform(), np.float64)
        unsheared = header.copy()
        unsheared.set_qform(sform)  # which holds no shear
        sform = np.asarray(unsheared.get_qform(), np.float64)
    except Exception:  # noqa: BLE001 - nibabel raises several kinds for quaternions that are none
        return False
    corners = np.array([[0, 0, 0, 1], [32, 0, 0, 1], [0, 32, 0, 1], [0, 0, 1, 1]]).T
    return bool(np.abs((sform - qform) @ corners).max() * unit > _TURNED_MM)
