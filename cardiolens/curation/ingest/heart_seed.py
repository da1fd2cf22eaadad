"""The left ventricle in a short-axis cine: its blood by slice and phase, around the heart's axis."""

import numpy as np

from cardiolens.curation.ingest.stack import Point, Stack
from cardiolens.study.blood_pool import BloodAreas, Cine, moving_pixel, slice_areas
from cardiolens.study.heart_frame import HeartFrame


def seed_by_motion(cine: Cine, stack: Stack) -> Point | None:
    """The middle of what moves most in the middle slices, in the patient; None for a cine without motion."""
    place = moving_pixel(cine)
    return None if place is None else stack.point(stack.n_slices // 2, place[1], place[0])


def blood_areas(cine: Cine, stack: Stack, axis: Point, frame: HeartFrame) -> BloodAreas:
    """Blood areas of a cine around the heart's axis."""
    areas = np.zeros(cine.shape[:2])
    row_mm, column_mm = stack.first.spacing
    for index in range(len(cine)):
        row, column = _pixel(stack, index, axis, frame)
        rows, columns = np.indices(cine.shape[2:])
        away = np.hypot((rows - row) * row_mm, (columns - column) * column_mm)
        areas[index] = slice_areas(cine[index].astype(np.float64), away) * row_mm * column_mm
    return BloodAreas(areas)


def _pixel(stack: Stack, index: int, axis: Point, frame: HeartFrame) -> tuple[float, float]:
    """Row and column at which the long axis meets a slice."""
    image = stack.grid[index][0]
    normal = stack.normal
    reach = float(normal @ (stack.corner(index) - axis)) / float(normal @ frame.base)
    offset = axis + reach * frame.base - stack.corner(index)
    column = float(offset @ np.array(image.row_direction)) / image.spacing[1]
    return float(offset @ np.array(image.column_direction)) / image.spacing[0], column
