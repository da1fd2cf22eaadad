"""Where the heart's long axis lies, by what the study itself shows.

Its directions are `base` along the axis, `up` (anterior in a displayed short axis) and `right` (lateral). A
short-axis stack defines the axis, if it lies as hearts do.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from cardiolens.curation.ingest.frame_records import Point, Stack
from cardiolens.study.orientation import TYPICAL_BASE, HeartFrame, frame_along

FEWEST_SLICES = 3  # of a stack that defines the axis
WHOLE_STACK = 6  # slices that, with whole cycles, only a short-axis cine has
_SHORT_AXIS_DEG = 35.0  # between a stack's normal and the typical axis
_LONG_AXIS_DEG = 25.0  # between a plane and the axis
_CONCURRENT_MM = 12.0


def heart_frame(stacks: Sequence[Stack]) -> HeartFrame:
    """Return the heart's frame by the largest short-axis stack, else a typical one."""
    several = [stack for stack in stacks if stack.n_slices >= FEWEST_SLICES]
    short = [stack for stack in several if tilt(stack, TYPICAL_BASE) < _SHORT_AXIS_DEG]
    if not short:
        return frame_along(None, None)
    frame = frame_along(max(short, key=lambda stack: (stack.n_slices, stack.n_phases)).normal, None)
    return replace(frame, axis=_crossing(stacks, frame))


def tilt(stack: Stack, axis: Point) -> float:
    """Return the angle between a stack's normal and an axis, 0 to 90 degrees."""
    cosine = abs(float(stack.normal @ axis)) / float(np.linalg.norm(stack.normal) * np.linalg.norm(axis))
    return float(np.degrees(np.arccos(min(cosine, 1.0))))


def _crossing(stacks: Sequence[Stack], frame: HeartFrame) -> Point | None:
    """Return a point on the line where most long-axis planes meet; None if fewer than three meet."""
    planes = [stack for stack in stacks if 90 - tilt(stack, frame.base) < _LONG_AXIS_DEG]
    crossings: list[tuple[int, float, Point]] = []
    for first, second in combinations(planes, 2):
        matrix = np.array([first.normal, second.normal, frame.base])
        if abs(np.linalg.det(matrix)) < 0.3:
            continue
        middles = _middle(first), _middle(second)
        level = float(frame.base @ (middles[0] + middles[1]) / 2)
        point = np.linalg.solve(
            matrix, [float(first.normal @ middles[0]), float(second.normal @ middles[1]), level]
        )
        distances = [plane_distance(plane, point) for plane in planes]
        near = [distance for distance in distances if distance < _CONCURRENT_MM]
        crossings.append((len(near), -sum(near), point))
    crossing = max(crossings, key=lambda each: each[:2], default=None)
    return crossing[2] if crossing is not None and crossing[0] >= 3 else None


def _middle(stack: Stack) -> Point:
    return stack.centre(stack.n_slices // 2)


def plane_distance(stack: Stack, point: Point) -> float:
    """Return the distance of a point from the middle plane of a stack, mm."""
    return abs(float(stack.normal @ (point - _middle(stack))))
