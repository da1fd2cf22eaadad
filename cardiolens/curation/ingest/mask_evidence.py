"""What a mask tells of its volume: at which end the base lies, where the right ventricle is, how large."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardiolens.curation.masks.labels import CAVITY, WALL, LabelMap, Tissue, Tissues
from cardiolens.curation.masks.mask_stack import Stack
from cardiolens.curation.masks.ring import impossible_in
from cardiolens.study.volume_manifest import DisplayTransform

_FEWEST_SLICES = 3  # with a cavity, for its area to tell base from apex
_SLOPE = 0.5  # least correlation of area and slice number
_FEWEST_PIXELS = 20  # of a ventricle in a slice, for its centre to tell a side
_SIDEWAYS = 0.5  # cosine of the largest angle between the direction of the right ventricle and image left
_FEWEST_FOR_LENGTH = 4


@dataclass(frozen=True, slots=True)
class MaskEvidence:
    """What the mask of a short axis tells."""

    larger_end: int  # 1: the base is at the last slice, -1: at the first, 0: undecided
    right_ventricle: tuple[float, float] | None  # rows and columns from the left ventricle, as stored
    cavity_mm: float | None  # diameter at the widest slice
    length_mm: float | None
    possible: bool  # whether its tissues lie as in a heart


def mask_evidence(
    masks: NDArray[np.int32], labels: LabelMap, sequence: str, spacing: tuple[float, float, float]
) -> MaskEvidence | None:
    """Return the evidence of masks (slice, phase, row, column); None without a cavity.

    `spacing`: mm between rows, columns, slices. InputError for values that the label map does not know.
    """
    labelled_phases = masks.any(axis=(0, 2, 3))
    if not labelled_phases.any():
        return None
    tissues: Tissues = labels.tissues(masks[:, labelled_phases], sequence)
    cavity = np.isin(tissues, [int(kind) for kind in CAVITY])
    by_phase = cavity.sum(axis=(0, 2, 3))
    if not by_phase.any():
        return None
    widest = int(by_phase.argmax())
    inside, right = cavity[:, widest], tissues[:, widest] == int(Tissue.RV_BLOOD)
    areas = inside.sum(axis=(1, 2)) * spacing[0] * spacing[1]
    labelled = np.flatnonzero(areas)
    length = (labelled[-1] - labelled[0]) * spacing[2] if len(labelled) >= _FEWEST_FOR_LENGTH else None
    return MaskEvidence(
        _larger_end(areas + right.sum(axis=(1, 2)) * spacing[0] * spacing[1]),
        _right_of(inside, right),
        float(2 * np.sqrt(areas.max() / np.pi)),
        None if length is None else float(length),
        _is_possible(tissues, by_phase, spacing),
    )


def _is_possible(tissues: Tissues, cavities: NDArray[np.int64], spacing: tuple[float, float, float]) -> bool:
    """Return whether the widest cavity among the phases whose muscle is drawn lies in a ring."""
    walled = np.isin(tissues, [int(kind) for kind in WALL]).any(axis=(0, 2, 3))
    phase = int(np.where(walled, cavities, -1).argmax())
    return impossible_in(Stack(tissues[:, phase], *spacing)) is None


def _larger_end(areas: NDArray[np.float64]) -> int:
    inside = np.flatnonzero(areas)
    if len(inside) < _FEWEST_SLICES or areas[inside].std() == 0:
        return 0
    slope = float(np.corrcoef(inside, areas[inside])[0, 1])
    return int(np.sign(slope)) if abs(slope) > _SLOPE else 0


def _right_of(lv: NDArray[np.bool_], rv: NDArray[np.bool_]) -> tuple[float, float] | None:
    steps = []
    for cavity, chamber in zip(lv, rv, strict=True):
        if min(np.count_nonzero(cavity), np.count_nonzero(chamber)) >= _FEWEST_PIXELS:
            centres = [np.argwhere(part).mean(axis=0) for part in (cavity, chamber)]
            steps.append(centres[1] - centres[0])
    if not steps:
        return None
    row, column = np.mean(steps, axis=0)
    return float(row), float(column)


def is_shown_left(step: tuple[float, float], transform: DisplayTransform) -> bool:
    """Return whether a display shows the right ventricle on the image's left; `step`: its (row, column).

    Stored frames of NIfTI are (column, row), so `transpose` shows rows as rows.
    """
    row, column = step if transform.transpose else (step[1], step[0])
    across = -column if transform.flip_cols else column
    return bool(-across / max(float(np.hypot(row, column)), 1e-9) > _SIDEWAYS)
