"""Display transform (one of eight), slice order and affine of a stack from patient coordinates."""

import numpy as np

from cardiolens.curation.ingest.stack import Point, Stack
from cardiolens.study.anatomy import heart
from cardiolens.study.heart_frame import Display, HeartFrame, best_display


def display(stack: Stack, view: str, frame: HeartFrame) -> Display:
    """Return the transform that displays a stack as its view requires; voxels are stored (column, row)."""
    columns, rows = np.array(stack.first.row_direction), np.array(stack.first.column_direction)
    return best_display(columns, rows, heart().views[view], frame)


def base_first(stack: Stack, frame: HeartFrame) -> bool:
    """Return whether the first slice is nearer to the base than the last; True for a single slice."""
    if stack.n_slices == 1:
        return True
    return float((stack.corner(0) - stack.corner(stack.n_slices - 1)) @ frame.base) > 0


def affine(stack: Stack) -> Point:
    """Return the affine from voxel (column, row, slice) to scanner RAS+, mm."""
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
