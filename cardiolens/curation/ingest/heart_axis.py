"""Where the heart's long axis lies, by what the study itself shows.

Its directions are `base` along the axis, `up` (anterior in a displayed short axis) and `right` (lateral). A
short-axis stack defines the axis, by its direction, or by its name, its shape and its siblings.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from cardiolens.curation.ingest.frame_records import WHOLE_CYCLE, Point, Stack
from cardiolens.study.anatomy import SHORT_AXIS
from cardiolens.study.orientation import PROTOTYPES, TYPICAL_BASE, HeartFrame, frame_along

FEWEST_SLICES = 3  # of a stack that defines the axis
WHOLE_STACK = 6  # slices that, with whole cycles, only a short-axis cine has
_SHORT_AXIS_DEG = 35.0  # between a stack's normal and the typical axis
_LONG_AXIS_DEG = 25.0  # between a plane and the axis
_CONCURRENT_MM = 12.0
_FARTHEST_DEG = 70.0  # from the typical axis: beyond it, which end is the base is not known
_ACROSS_DEG = 15.0  # between a stack's normal and the plane of a sibling
_SCANNER_DEG = 10.0  # between a normal and an axis of the scanner: an axial, coronal or sagittal stack
_ENOUGH = 2  # support from which a stack defines the axis


def heart_frame(stacks: Sequence[Stack]) -> HeartFrame:
    """Return the heart's frame by the best short-axis stack, else a typical one."""
    planes = [stack for stack in stacks if _named_view(stack) in PROTOTYPES]
    supported = [(_support(stack, planes), stack) for stack in stacks if stack.n_slices >= FEWEST_SLICES]
    short = [(support, stack) for support, stack in supported if support >= _ENOUGH]
    if not short:
        return frame_along(None, None)
    _, best = max(short, key=lambda pair: (pair[0], pair[1].n_slices, pair[1].n_phases))
    frame = frame_along(best.normal, None)
    return replace(frame, axis=_crossing(stacks, frame))


def _named_view(stack: Stack) -> str | None:
    """Return the view that the stack's names agree on; `other` for another part of the body."""
    if any(words.kind for words in stack.words):
        return "other"
    views = {view for words in stack.words for view in words.views}
    return views.pop() if len(views) == 1 else None


def _support(stack: Stack, planes: Sequence[Stack]) -> int:
    """Return how much speaks for a stack of several slices to be the short axis.

    A typical direction counts 2, as much as a name together with named long-axis planes that all contain
    the normal, or with slices and phases that only a short axis has.
    """
    typical = tilt(stack, TYPICAL_BASE)
    leanings = [90 - tilt(plane, stack.normal) for plane in planes if plane is not stack]
    is_across = bool(leanings) and min(leanings) < _ACROSS_DEG and max(leanings) <= _LONG_AXIS_DEG
    if typical < _SHORT_AXIS_DEG:
        return 2 + is_across
    is_scanner_axis = any(tilt(stack, axis) < _SCANNER_DEG for axis in np.eye(3))
    if _named_view(stack) != SHORT_AXIS or typical >= _FARTHEST_DEG or is_scanner_axis:
        return 0
    return 1 + is_across + (stack.n_slices >= WHOLE_STACK and stack.n_phases >= WHOLE_CYCLE)


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
