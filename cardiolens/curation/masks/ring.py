"""Detect a wrong label map: left ventricular blood must lie within a ring of muscle."""

import numpy as np
from scipy import ndimage

from cardiolens.base.errors import InputError
from cardiolens.curation.masks.labels import WALL, LabelMap, Tissue, label_maps
from cardiolens.curation.masks.mask_stack import Mask, Stack

_WITHIN = 0.7  # least muscle share of the LV blood's border; RV blood has about a third
_TOUCHING = 0.05  # largest share of the RV blood's border that may be LV blood
_THICKEST_MM = 10.0  # largest inscribed radius of a lesion; the RV cavity's is larger
_LESIONS = (Tissue.SCAR, Tissue.OEDEMA, Tissue.OBSTRUCTION)
_CROSS = ndimage.generate_binary_structure(2, 1)[None]  # neighbours within a slice


def check_ring(stack: Stack, path: str, labels: LabelMap, values: set[int], sequence: str) -> None:
    """Raise InputError if no heart can have this arrangement of tissues."""
    wrong = impossible_in(stack)
    if wrong:
        fitting = [
            candidate
            for candidate in label_maps().values()
            if candidate is not labels and candidate.fits(values, sequence)
        ]
        names = ", ".join(candidate.name for candidate in fitting) or "none of the known ones"
        raise InputError(
            f"{path}: read as {labels.name}, {wrong}; the label map is probably wrong "
            f"(the values also fit: {names}); name the right one"
        )


def impossible_in(stack: Stack) -> str | None:
    """Return what no heart has of the arrangement of tissues; None for a heart."""
    cavity, wall, right = stack.cavity, stack.of(WALL), stack.of([Tissue.RV_BLOOD])
    border = _border(cavity) & ~stack.of([Tissue.OTHER])
    if not wall.any():
        return "there is no myocardium"
    both = wall.any(axis=(1, 2))  # slices above the muscle are no evidence
    edge_of_cavity = border[both]
    share = float(wall[both][edge_of_cavity].mean()) if edge_of_cavity.any() else 0.0
    if share < _WITHIN:
        return f"only {100 * share:.0f} % of the border of the left ventricular blood is myocardium"
    edge = _border(right)
    if np.count_nonzero(edge & cavity) > _TOUCHING * np.count_nonzero(edge):
        return "blood of the right ventricle touches that of the left"
    radius = _thickest_mm(stack, stack.of(_LESIONS))
    if radius > _THICKEST_MM:
        return f"a lesion is {2 * radius:.0f} mm thick"
    return None


def _border(inside: Mask) -> Mask:
    """Return the pixels outside a region that touch the region within a slice."""
    grown: Mask = ndimage.binary_dilation(inside, structure=_CROSS) & ~inside
    return grown


def _thickest_mm(stack: Stack, inside: Mask) -> float:
    sizes = (stack.row_mm, stack.column_mm)
    thicknesses = [
        float(ndimage.distance_transform_edt(ring, sampling=sizes).max()) for ring in inside if ring.any()
    ]
    return max(thicknesses, default=0.0)
