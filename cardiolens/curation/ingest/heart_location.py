"""Locate the heart of a study: its frame, its long axis, and the blood areas around it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cardiolens.curation.ingest.image import Image
from cardiolens.curation.ingest.orient import base_first
from cardiolens.curation.ingest.pixels import Frame, stacked
from cardiolens.curation.ingest.propose import propose
from cardiolens.curation.ingest.series_grouping import reversed_stack
from cardiolens.curation.ingest.stack import Point, Stack
from cardiolens.curation.ingest.stack_geometry import heart_frame
from cardiolens.study.blood_pool import BloodAreas, Cine, moving_pixel, slice_areas
from cardiolens.study.heart_frame import HeartFrame

_FEWEST_CINE_SLICES = 3


def locate_heart(stacks: Sequence[Stack], pixels: dict[Image, Frame]) -> tuple[HeartFrame, BloodAreas | None]:
    """Return the heart's frame, with the axis where planes cross or the cine moves, and its blood areas."""
    frame = heart_frame(stacks, None)
    candidates = [
        proposal.stack
        for proposal in propose(stacks, frame)
        if proposal.volume_id == "cine_sax" and proposal.stack.n_slices >= _FEWEST_CINE_SLICES
    ]
    if not candidates:
        return frame, None
    cine = max(candidates, key=lambda stack: (stack.n_slices, stack.n_phases, stack.later))
    cine = cine if base_first(cine, frame) else reversed_stack(cine)
    values, _, _ = stacked(cine, pixels)
    seeds = [seed for seed in (frame.axis, _seed_by_motion(values, cine)) if seed is not None]
    for seed in seeds:
        areas = _blood_areas(values, cine, seed, frame)
        if areas.found():
            return (frame if frame.axis is not None else replace(frame, axis=seed)), areas
    return frame, None


def _seed_by_motion(cine: Cine, stack: Stack) -> Point | None:
    """Locate the largest motion of the middle slices, in patient coordinates; None without motion."""
    place = moving_pixel(cine)
    return None if place is None else stack.point(stack.n_slices // 2, place[1], place[0])


def _blood_areas(cine: Cine, stack: Stack, axis: Point, frame: HeartFrame) -> BloodAreas:
    """Measure the blood area by slice and phase around the heart's long axis."""
    areas = np.zeros(cine.shape[:2])
    row_mm, column_mm = stack.first.spacing
    for index in range(len(cine)):
        image, offset = stack.grid[index][0], axis_offset(stack, index, axis, frame)
        row = float(offset @ np.array(image.column_direction)) / image.spacing[0]
        column = float(offset @ np.array(image.row_direction)) / image.spacing[1]
        rows, columns = np.indices(cine.shape[2:])
        away = np.hypot((rows - row) * row_mm, (columns - column) * column_mm)
        areas[index] = slice_areas(cine[index].astype(np.float64), away) * row_mm * column_mm
    return BloodAreas(areas)


def axis_offset(stack: Stack, index: int, axis: Point, frame: HeartFrame) -> Point:
    """Vector from the first pixel of a slice to the point where the long axis meets the slice."""
    reach = float(stack.normal @ (stack.corner(index) - axis)) / float(stack.normal @ frame.base)
    offset: Point = axis + reach * frame.base - stack.corner(index)
    return offset
