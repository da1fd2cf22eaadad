"""Where the heart's long axis lies, by what the study itself shows.

Its directions are `base` along the axis, `up` (anterior in a displayed short axis) and `right` (lateral). A
stack's siblings, its name and its own shape define the axis, before any prior; without a short axis, the line
in which the long-axis planes meet.
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
_ACROSS_DEG = 15.0  # between a stack's normal and a plane, or a line of planes, of its siblings
_SCANNER_DEG = 10.0  # between a normal and an axis of the scanner: an axial, coronal or sagittal stack
_APART_DEG = 30.0  # between two planes whose common line is meant
_ENOUGH = 2  # support from which a stack defines the axis


def heart_frame(stacks: Sequence[Stack]) -> HeartFrame:
    """Return the heart's frame by the best short-axis stack, else by long-axis planes, else a typical one."""
    planes = [
        stack
        for stack in stacks
        if (view := _named_view(stack)) in PROTOTYPES or (view is None and stack.n_slices < FEWEST_SLICES)
    ]
    supported = [(_support(stack, planes), stack) for stack in stacks if stack.n_slices >= FEWEST_SLICES]
    short = [(support, stack) for support, stack in supported if support >= _ENOUGH]
    if short:
        _, best = max(short, key=lambda pair: (pair[0], pair[1].n_slices, pair[1].n_phases))
        direction: Point | None = best.normal
    else:
        direction = _common_line([plane for plane in planes if _named_view(plane) in PROTOTYPES])
    frame = frame_along(direction, None)
    return frame if direction is None else replace(frame, axis=_crossing(stacks, frame))


def _named_view(stack: Stack) -> str | None:
    """Return the view that the stack's names agree on; `other` for another part of the body."""
    if any(words.kind for words in stack.words):
        return "other"
    views = {view for words in stack.words for view in words.views}
    return views.pop() if len(views) == 1 else None


def _support(stack: Stack, planes: Sequence[Stack]) -> int:
    """Return how much speaks for a stack of several slices to be the short axis.

    A typical direction counts 2, as much as two planes that meet along the normal, or as a name together
    with one plane across or with slices and phases that only a short axis has.
    """
    view, typical = _named_view(stack), tilt(stack, TYPICAL_BASE)
    if typical >= _FARTHEST_DEG:
        return 0
    support = _from_siblings(stack, planes)
    if typical < _SHORT_AXIS_DEG:
        return 2 + max(support, 0)
    support += 1 if view == SHORT_AXIS else 0 if view is None else -2
    support += int(stack.n_slices >= WHOLE_STACK and stack.n_phases >= WHOLE_CYCLE)
    return support - int(any(tilt(stack, axis) < _SCANNER_DEG for axis in np.eye(3)))


def _from_siblings(stack: Stack, planes: Sequence[Stack]) -> int:
    """Return 2 if two planes meet along the normal, 1 if one lies across, -1 if a named one does not."""
    siblings = [plane for plane in planes if plane is not stack and tilt(plane, stack.normal) > _APART_DEG]
    lines = [line for pair in combinations(siblings, 2) if (line := _line(*pair)) is not None]
    if any(_between(line, stack.normal) < _ACROSS_DEG for line in lines):
        return 2
    leanings = [(90 - tilt(plane, stack.normal), _named_view(plane) in PROTOTYPES) for plane in planes]
    if any(is_named and leaning > _LONG_AXIS_DEG for leaning, is_named in leanings):
        return -1
    return int(any(leaning < _ACROSS_DEG for leaning, _ in leanings))


def _common_line(planes: Sequence[Stack]) -> Point | None:
    """Return the line that all named long-axis planes contain; None without two views, or if it is odd.

    Without a short axis any two planes have a line: the typical axis must agree with it.
    """
    if len({_named_view(plane) for plane in planes}) < 2:
        return None
    lines = [line for pair in combinations(planes, 2) if (line := _line(*pair)) is not None]
    for line in lines:
        is_in_all = all(90 - tilt(plane, line) < _ACROSS_DEG for plane in planes)
        if is_in_all and _between(line, TYPICAL_BASE) < _SHORT_AXIS_DEG:
            return line
    return None


def _line(first: Stack, second: Stack) -> Point | None:
    """Return the direction in which two planes meet; None if they are nearly parallel."""
    line = np.cross(first.normal, second.normal)
    length = float(np.linalg.norm(line))
    return None if length < np.sin(np.radians(_APART_DEG)) else line / length


def tilt(stack: Stack, axis: Point) -> float:
    """Return the angle between a stack's normal and an axis, 0 to 90 degrees."""
    return _between(stack.normal, axis)


def _between(first: Point, second: Point) -> float:
    """Return the angle between two lines in space, 0 to 90 degrees."""
    cosine = abs(float(first @ second)) / float(np.linalg.norm(first) * np.linalg.norm(second))
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
