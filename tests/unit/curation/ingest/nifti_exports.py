"""The phantom's volumes as NIfTI in the spellings that people use: axes, files, names."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path

import nibabel as nib
import numpy as np

CYCLE_S = 0.066  # of a phase
PLACEMENTS = [
    (order, flips) for order in permutations(range(3)) for flips in product((False, True), repeat=3)
]


@dataclass(frozen=True)
class Grid:
    """A volume as (column, row, slice, phase) with its affine, and what it is."""

    voxels: np.ndarray
    affine: np.ndarray
    sequence: str
    volume_id: str
    ed: int = 0
    es: int = 0

    def placed(self, order: tuple[int, ...], flips: tuple[bool, ...]) -> "Grid":
        """The same volume with its three axes in another order and direction, the affine with them."""
        voxels, affine = self.voxels.transpose(*order, 3), self.affine[:, [*order, 3]].copy()
        for axis in np.flatnonzero(flips):
            voxels = np.flip(voxels, axis)
            affine[:, 3] += affine[:, axis] * (voxels.shape[axis] - 1)
            affine[:, axis] *= -1
        return Grid(voxels, affine, self.sequence, self.volume_id, self.ed, self.es)


def grids(study: Path) -> list[Grid]:
    """The volumes of a phantom study."""
    found = []
    for volume in json.loads((study / "study.json").read_text())["volumes"]:
        image = nib.load(study / volume["path"])
        n_slices, n_phases = volume["layout"]["n_slices"], volume["layout"]["n_phases"]
        voxels = np.asarray(image.dataobj)
        voxels = voxels.reshape(*voxels.shape[:2], n_slices, n_phases)
        sequence, affine = volume["sequence"], image.affine
        times = volume["ed_phase"], volume["es_phase"] or 0
        found.append(Grid(voxels, affine, sequence, volume["volume_id"], *times))
    return found


def save(path: Path, voxels: np.ndarray, affine: np.ndarray | None, **header: object) -> Path:
    """Write voxels; `header` sets fields, `step_s` the time from phase to phase."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = nib.Nifti1Image(np.ascontiguousarray(voxels), affine)
    if affine is None:
        image.set_sform(None, 0)
        image.set_qform(None, 0)
    else:
        image.set_sform(affine, 2)
        image.set_qform(None, 0)
    step = header.pop("step_s", None)
    if step is not None:
        image.header.set_xyzt_units("mm", "sec")
        image.header["pixdim"][4] = step
    for name, value in header.items():
        image.header[name] = value
    nib.save(image, path)
    return path


def step_of(grid: Grid) -> dict[str, object]:
    return {"step_s": CYCLE_S if grid.sequence == "cine" else 0.9} if grid.voxels.shape[3] > 1 else {}


def whole(folder: Path, grid: Grid, name: str | None = None, suffix: str = ".nii.gz") -> None:
    """One file a view, time on the fourth axis."""
    voxels = grid.voxels[..., 0] if grid.voxels.shape[3] == 1 else grid.voxels
    save(folder / f"{name or grid.volume_id}{suffix}", voxels, grid.affine, **step_of(grid))


def flat(folder: Path, grid: Grid) -> None:
    """Slices and phases on one axis, slice by slice."""
    save(folder / f"{grid.volume_id}.nii", grid.voxels.reshape(*grid.voxels.shape[:2], -1), grid.affine)


def by_slice(folder: Path, grid: Grid) -> None:
    """One file a slice."""
    for k in range(grid.voxels.shape[2]):
        affine = grid.affine.copy()
        affine[:, 3] += affine[:, 2] * k
        voxels = grid.voxels[:, :, k : k + 1]
        voxels = voxels[..., 0] if voxels.shape[3] == 1 else voxels
        save(folder / f"{grid.volume_id}_slice{k + 1}.nii.gz", voxels, affine, **step_of(grid))


def by_phase(folder: Path, grid: Grid) -> None:
    """One file a phase."""
    for phase in range(grid.voxels.shape[3]):
        number = f"_frame{phase + 1}" if grid.voxels.shape[3] > 1 else ""
        save(folder / f"{grid.volume_id}{number}.nii", grid.voxels[..., phase], grid.affine)


SPELLINGS: dict[str, Callable[[Path, Grid], None]] = {
    "whole": whole,
    "flat": flat,
    "by_slice": by_slice,
    "by_phase": by_phase,
}
