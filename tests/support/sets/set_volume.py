"""One volume as a set stores it: voxels and labels as (column, row, slice, phase), with its place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom import codes
from cardiolens.phantom.planes import Size, affine
from cardiolens.phantom.render import Rendered

Array = NDArray[np.int16]


@dataclass(frozen=True)
class SetVolume:
    """A volume with row numbers growing downward, as scanners store them."""

    voxels: Array  # (column, row, slice, phase)
    codes: Array  # tissue codes of the phantom, the same shape
    affine: NDArray[np.float64]  # (column, row, slice) to RAS, mm
    spacing_mm: tuple[float, float, float]
    es: int

    def reversed(self) -> "SetVolume":
        """The same volume with its slices from the other end."""
        turned = self.affine.copy()
        turned[:, 3] += turned[:, 2] * (self.voxels.shape[2] - 1)
        turned[:, 2] *= -1
        return replace(self, voxels=self.voxels[:, :, ::-1], codes=self.codes[:, :, ::-1], affine=turned)

    def slices(self, chosen: Sequence[int]) -> "SetVolume":
        """The volume of some neighbouring slices."""
        moved = self.affine.copy()
        moved[:, 3] += moved[:, 2] * chosen[0]
        picked = list(chosen)
        return replace(self, voxels=self.voxels[:, :, picked], codes=self.codes[:, :, picked], affine=moved)

    def at_end_diastole(self) -> "SetVolume":
        """The volume of the first phase."""
        return replace(self, voxels=self.voxels[..., :1], codes=self.codes[..., :1])

    def labels(self, values: Mapping[str, int], lesion: str) -> Array:
        """Labels by tissue; a tissue that the set does not label is what it lies in."""
        table = np.zeros(256, dtype=np.int16)
        muscle = values.get("myocardium", 0)
        table[1:18] = table[201:218] = muscle
        table[101:118] = values.get(lesion, muscle)
        table[151:168] = values.get("obstruction", values.get(lesion, muscle))
        papillary = (code + codes.PAPILLARY for code in (0, codes.LESION, codes.OBSTRUCTION))
        for code in (codes.LV_BLOOD, codes.SLOW_FLOW, *papillary):
            table[code] = values.get("lv_blood", 0)
        table[codes.RV_BLOOD] = values.get("rv_blood", 0)
        return np.asarray(table[self.codes])


def set_volume(rendered: Rendered, size: Size) -> SetVolume:
    """Turn a rendered view into a volume as stored; of a long axis, its middle layer."""
    n_slices, pixels = len(rendered.planes), size.pixels
    assert rendered.masks is not None
    shape = (n_slices, rendered.phases, pixels, pixels)
    voxels, marks = (
        np.asarray(frames, dtype=np.int16).reshape(shape).transpose(3, 2, 0, 1)
        for frames in (rendered.frames, rendered.masks)
    )
    first = rendered.planes[0]
    if n_slices > 1:
        between = np.array(rendered.planes[1].centre) - np.array(first.centre)
    else:
        between = 8.0 * np.cross(first.down, first.right)
    x, y, z = (float(part) for part in between)
    matrix = affine(rendered.planes, pixels, size.spacing_mm, (x, y, z))
    matrix[:, 3] += matrix[:, 1] * (pixels - 1)
    matrix[:, 1] *= -1
    gap = round(float(np.linalg.norm(between)), 6)
    volume = SetVolume(voxels, marks, matrix, (size.spacing_mm, size.spacing_mm, gap), rendered.es_phase)
    if rendered.view.kind == "long_axis" and n_slices > 1:
        return volume.slices([n_slices // 2])
    return volume
