"""Display and order of a stack from patient coordinates: which of eight transforms, which end is the base.

A short axis is shown with the right ventricle on the image's left and the anterior wall up (protocol 1.4).
A long axis is shown as the phantom shows it: apex up, and on the image's right what lies at 30 degrees
(four-chamber, the lateral wall), 90 (two-chamber, the anterior wall) or 330 (three-chamber, the
inferolateral wall).
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from cardiolens.intake.geometry import PROTOTYPES, HeartFrame
from cardiolens.intake.stack import Point, Stack
from cardiolens.study.manifest import DisplayTransform
from cardiolens.study.sequences import SHORT_AXIS

# Degrees in the heart's frame of what lies on the image's right; 3ch planes are shown from their other end.
PROTOTYPE_RIGHT = PROTOTYPES | {"3ch": PROTOTYPES["3ch"] - 180}
_CLEAR = 0.25  # how much better the best transform must be than the next: turned by less than 38 degrees


@dataclass(frozen=True, slots=True)
class Display:
    """A transform, and whether it is clearly the best of the eight."""

    transform: DisplayTransform
    clear: bool


def display(stack: Stack, view: str, frame: HeartFrame) -> Display:
    """The transform that shows a stack as its view is shown; stored voxels are (column, row) of DICOM."""
    right, up = _wanted(view, frame)
    columns, rows = np.array(stack.first.row_direction), np.array(stack.first.column_direction)
    scores: list[tuple[float, DisplayTransform]] = []
    for transpose, flip_rows, flip_cols in product((False, True), repeat=3):
        down, across = (rows, columns) if transpose else (columns, rows)
        image_right, image_up = -across if flip_cols else across, down if flip_rows else -down
        transform = DisplayTransform(transpose=transpose, flip_rows=flip_rows, flip_cols=flip_cols)
        scores.append((float(image_right @ right + image_up @ up), transform))
    scores.sort(key=lambda score: score[0], reverse=True)
    return Display(scores[0][1], scores[0][0] - scores[1][0] > 2 * _CLEAR)


def _wanted(view: str, frame: HeartFrame) -> tuple[Point, Point]:
    """Image right and image up, as directions in the patient."""
    if view == SHORT_AXIS:
        return frame.right, frame.up
    return frame.toward(PROTOTYPE_RIGHT[view]), -frame.base


def base_first(stack: Stack, frame: HeartFrame) -> bool:
    """Whether the first slice is nearer to the base than the last; of one slice True."""
    if stack.n_slices == 1:
        return True
    return float((stack.corner(0) - stack.corner(stack.n_slices - 1)) @ frame.base) > 0


def affine(stack: Stack) -> Point:
    """Voxel (column, row, slice) to scanner RAS+, mm."""
    image = stack.first
    if stack.n_slices > 1:
        step = (stack.corner(stack.n_slices - 1) - stack.corner(0)) / (stack.n_slices - 1)
    else:
        step = stack.normal * stack.step
    matrix = np.eye(4)
    matrix[:3, 0] = np.array(image.row_direction) * image.spacing[1]
    matrix[:3, 1] = np.array(image.column_direction) * image.spacing[0]
    matrix[:3, 2] = step
    matrix[:3, 3] = stack.corner(0)
    return np.diag([-1.0, -1.0, 1.0, 1.0]) @ matrix
