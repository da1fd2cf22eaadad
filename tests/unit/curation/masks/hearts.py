"""Hearts of known size as study folders with masks, in the values of any label map."""

import numpy as np

from cardiolens.curation.masks.labels import Tissue, label_map
from tests.unit.study_folders import study, volume, write_nifti

SLICES = 9
UPRIGHT = np.array([[0.0, -1, 0], [-1, 0, 0], [0, 0, 1]])  # i down, j to the patient's left


def heart(
    *,
    size=(96, 96),
    pixel=(1.5, 1.5),
    step=8.0,
    radius=lambda z: 24.0,
    wall=lambda degrees: 9.0,
    turn=0.0,
    right=True,
    lesion=None,
):
    """Tissues (row, column, slice): a cavity of a radius at each height, its wall, a right ventricle at left.

    A lesion is (first and last degree, inner and outer depth, slices).
    """
    rows, columns = np.indices(size)
    y = (size[0] / 2 - rows) * pixel[0]
    x = (columns - size[1] / 2) * pixel[1]
    rho, degrees = np.hypot(x, y), (np.rad2deg(np.arctan2(y, x)) - turn) % 360
    found = np.zeros((*size, SLICES), dtype=np.int16)
    for number in range(SLICES):
        inner = radius(number * step)
        outer = inner + wall(degrees)
        plane = found[..., number]
        if right:
            away = np.hypot(x + 20 * np.cos(np.deg2rad(turn)), y + 20 * np.sin(np.deg2rad(turn)))
            plane[(away < 36) & (np.abs((degrees - 180 + 180) % 360 - 180) < 65)] = Tissue.RV_BLOOD
        plane[rho < outer] = Tissue.MYOCARDIUM
        if lesion is not None and number in lesion[2]:
            depth = (rho - inner) / (outer - inner)
            (first, last), (low, high) = lesion[:2]
            within = (degrees - first) % 360 <= (last - first) % 360
            within &= plane == Tissue.MYOCARDIUM
            plane[within & (depth >= low) & (depth <= high)] = Tissue.SCAR
        plane[rho < inner] = Tissue.LV_BLOOD
    return found


def encoded(tissues, labels, sequence):
    """Tissues as the values of a label map."""
    value_of = {}
    for value, tissue in label_map(labels).tissue_of(sequence).items():
        value_of.setdefault(int(tissue), value)
    return np.vectorize(value_of.__getitem__)(tissues).astype(np.int16)


def folder_of(
    folder, *moments, labels="acdc", pixel=(1.5, 1.5), step=8.0, turned=None, sequence="cine", **changes
):
    """A study whose only volume has these tissues at end-diastole and end-systole, or at its one moment."""
    masks = np.stack([encoded(one, labels, sequence) for one in moments], axis=-1)
    affine = np.eye(4)
    axes = UPRIGHT if turned is None else turned @ UPRIGHT
    affine[:3, :3] = axes * np.array([*pixel, step])
    shape = (*masks.shape[:2], masks.shape[2] * masks.shape[3])
    flat = masks.reshape(shape)
    path = f"masks/{sequence}_sax.nii.gz"
    static = len(moments) == 1
    entry = volume(
        folder,
        flat,
        f"{sequence}_sax",
        spacing_mm=[float(pixel[0]), float(pixel[1]), float(step)],
        layout={
            "order": "static" if static and sequence != "cine" else "slice_major",
            "n_slices": masks.shape[2],
            "n_phases": len(moments),
        },
        mask={"path": path, "sha256": write_nifti(folder / path, flat, affine)},
        **({} if static else {"ed_phase": 0, "es_phase": 1}),
        **changes,
    )
    return study(folder, entry)
