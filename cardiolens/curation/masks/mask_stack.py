"""Read the mask of a short-axis volume: tissues in display orientation, base to apex, sizes in mm.

A wrong label map is detected: left ventricular blood must lie within a ring of muscle.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from cardiolens.base.errors import InputError
from cardiolens.curation.masks.labels import CAVITY, WALL, LabelMap, Tissue, Tissues, label_maps
from cardiolens.study.manifest import Study
from cardiolens.study.nifti import read_header
from cardiolens.study.orientation import StudyOrientation, VolumePlacement
from cardiolens.study.volume import naming_file, read_mask
from cardiolens.study.volume_manifest import VolumeManifest

_SKEW = 0.02  # largest cosine of the angle between pixel axes
_TURNED = 0.1  # largest difference of its axes' cosines from those of turns by 90 degrees and of mirrors

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Stack:
    """Tissues at one phase, (slice, row, column), and the voxel size, including the gap between slices."""

    tissues: Tissues
    row_mm: float
    column_mm: float
    step_mm: float  # from slice to slice along the normal

    def of(self, kinds: Iterable[int]) -> Mask:
        """Return the mask of some tissues."""
        return np.isin(self.tissues, [int(kind) for kind in kinds])

    def volume_ml(self, inside: Mask) -> float:
        """Return the volume of a region in mL, by summation of slices."""
        return float(np.count_nonzero(inside)) * self.row_mm * self.column_mm * self.step_mm / 1000

    @property
    def cavity(self) -> Mask:
        return self.of(CAVITY)


@dataclass(frozen=True, slots=True)
class Masked:
    """The mask of a short-axis volume: stacks at end-diastole and, if labelled, end-systole."""

    volume_id: str
    sequence: str
    ed: Stack
    es: Stack | None
    ordered: bool  # whether slice 0 is known to be the most basal
    display_contradicted: bool  # whether affines contradict the display, or place the mask as no mask of it
    moments: tuple[int, int | None] = (0, None)  # phases of end-diastole and, if labelled, end-systole


def read_masked(study: Study, manifest: VolumeManifest, labels: LabelMap) -> Masked:
    """Read the mask of a volume; InputError if its shape, affine or values do not fit."""
    assert manifest.mask is not None
    mask, path = read_mask(study.folder, manifest), manifest.mask.path
    with naming_file(path):
        tissues = labels.tissues(mask.displayed(mask.grid), manifest.sequence)
        affine = read_header(study.folder / path).affine
        sizes = _sizes(affine, manifest)
        ed, es = _moments(tissues, manifest, manifest.timing().ed_phase)
    orientation = StudyOrientation(study)
    image = orientation.placements.get(manifest.volume_id)
    return Masked(
        volume_id=manifest.volume_id,
        sequence=manifest.sequence,
        ed=Stack(tissues[:, ed], *sizes),
        es=None if es is None else Stack(tissues[:, es], *sizes),
        ordered=manifest.spatial_order != "unknown",
        display_contradicted=_is_turned(affine, image) or orientation.contradicts(manifest),
        moments=(ed, es),
    )


def _moments(tissues: Tissues, manifest: VolumeManifest, ed: int) -> tuple[int, int | None]:
    """Return ED and ES phase: as declared if labelled, else the phases of largest and smallest cavity."""
    areas = np.isin(tissues, [int(kind) for kind in CAVITY]).sum(axis=(0, 2, 3))
    labelled = np.flatnonzero(areas)
    if not len(labelled):
        raise InputError("holds no left ventricular cavity; correct or remove it")
    if ed not in labelled:
        ed = int(labelled[np.argmax(areas[labelled])])
    if len(labelled) < 2:
        return ed, None
    es = manifest.es_phase
    if es is None or es not in labelled:
        es = int(labelled[np.argmin(areas[labelled])])
    return ed, None if es == ed else es


def _is_turned(affine: NDArray[Any] | None, image: VolumePlacement | None) -> bool:
    """Return whether the axes of a mask run against those of its image, or along others of them."""
    if affine is None or image is None:
        return False
    axes = np.diag([-1, -1, 1]) @ affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)
    cosines = image.axes @ axes  # to the left, back and head
    nearest = np.rint(cosines)
    return bool(np.abs(cosines - nearest).max() < _TURNED) and not np.array_equal(nearest, np.eye(3))


def _sizes(affine: NDArray[Any] | None, manifest: VolumeManifest) -> tuple[float, float, float]:
    """Return the declared row, column and slice spacing in mm, which `read_volume` compares with the affine.

    InputError if the affine is skewed.
    """
    if affine is not None:
        i, j = affine[:3, 0], affine[:3, 1]
        if abs(float(i @ j)) > _SKEW * float(np.linalg.norm(i) * np.linalg.norm(j)):
            raise InputError("the pixels of its affine are skewed; re-export the mask")
    size_i, size_j, step = manifest.spacing_mm
    return (size_j, size_i, step) if manifest.display_transform.transpose else (size_i, size_j, step)


_WITHIN = 0.7  # least muscle share of the LV blood's border; RV blood has about a third
_TOUCHING = 0.05  # largest share of the RV blood's border that may be LV blood
_THICKEST_MM = 10.0  # largest inscribed radius of a lesion; the RV cavity's is larger
_LESIONS = (Tissue.SCAR, Tissue.OEDEMA, Tissue.OBSTRUCTION)
_CROSS = ndimage.generate_binary_structure(2, 1)[None]  # neighbours within a slice


def check_ring(stack: Stack, path: str, labels: LabelMap, sequence: str) -> None:
    """Raise InputError if no heart can have this arrangement of tissues."""
    wrong = impossible_in(stack)
    if wrong is None:
        return
    tissues = set(np.unique(stack.tissues).tolist())
    values = {value for value, tissue in labels.tissue_of(sequence).items() if int(tissue) in tissues}
    rivals = [each for each in label_maps().values() if each is not labels]
    fitting = [each.name for each in rivals if values <= each.tissue_of(sequence).keys()]
    raise InputError(
        f"{path}: read as {labels.name}, {wrong}; the label map is probably wrong "
        f"(the values also fit: {', '.join(fitting) or 'none of the known ones'}); name the right one"
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
