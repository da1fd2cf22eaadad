"""Classify views by the angle between their planes and the heart's long axis, in patient coordinates.

The heart's frame has three directions: `base` along the long axis, `up` (anterior in a displayed short axis)
and `right` (lateral). What the study itself shows defines it, before any prior: a stack's siblings, its mask,
its name and its own shape; without a short axis, the line in which its long-axis planes meet.

The angles of long-axis planes are those of protocol 1.3 rotated into this frame: four-, two- and
three-chamber planes lie near 8, 67 and 128 degrees. The shipped phantom has 3, 63 and 123, one real study
has 12, 70 and 133.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from cardiolens.curation.ingest.stack import Point, Stack
from cardiolens.study.anatomy import SHORT_AXIS
from cardiolens.study.heart_frame import PROTOTYPES, TYPICAL_BASE, HeartFrame, frame_along

_SPREAD_DEG, _SPREAD_MM = 13.0, 8.0
_SHORT_AXIS_DEG = 35.0  # between a stack's normal and the typical axis
_PARALLEL_DEG = 15.0  # between a stack's normal and the known axis
_LONG_AXIS_DEG = 25.0  # between a plane and the axis
_FEWEST_SLICES = 3  # of a stack that defines the axis
_CONCURRENT_MM = 12.0
_FARTHEST_DEG = 70.0  # from the typical axis: beyond it, which end is the base is not known
_ACROSS_DEG = 15.0  # between a stack's normal and a plane, or a line of planes, of its siblings
_SCANNER_DEG = 10.0  # between a normal and an axis of the scanner: an axial, coronal or sagittal stack
_APART_DEG = 30.0  # between two planes whose common line is meant
WHOLE_STACK, _WHOLE_CYCLE = 6, 8  # slices and phases that only a short-axis cine has
_ENOUGH = 2  # support from which a stack defines the axis


def heart_frame(stacks: Sequence[Stack], centre: Point | None) -> HeartFrame:
    """Return the heart's frame by the best short-axis stack, else by long-axis planes, else a typical one.

    `centre` is the centre of the ventricle, if known.
    """
    planes = long_axis_planes(stacks)
    supported = [(_support(stack, planes), stack) for stack in stacks if stack.n_slices >= _FEWEST_SLICES]
    short = [(support, stack) for support, stack in supported if support >= _ENOUGH]
    if short:
        _, best = max(short, key=lambda pair: (pair[0], pair[1].n_slices, pair[1].n_phases))
        direction: Point | None = best.normal
    else:
        direction = _common_line(planes)
    frame = frame_along(direction, centre)
    if centre is not None or direction is None:
        return frame
    return replace(frame, axis=_crossing(stacks, frame))


def long_axis_planes(stacks: Sequence[Stack]) -> list[Stack]:
    """Return the stacks that are named a long-axis view, and single planes that are not named otherwise."""
    return [
        stack
        for stack in stacks
        if (view := _named_view(stack)) in PROTOTYPES or (view is None and stack.n_slices < _FEWEST_SLICES)
    ]


def _named_view(stack: Stack) -> str | None:
    """Return the view that the stack's names agree on; `other` for another part of the body."""
    if any(words.kind for words in stack.words):
        return "other"
    views = {view for words in stack.words for view in words.views}
    return views.pop() if len(views) == 1 else None


def _support(stack: Stack, planes: Sequence[Stack]) -> int:
    """Return how much speaks for a stack of several slices to be the short axis.

    A typical direction counts 2, as much as a mask of rings, as two planes that meet along the normal, or as
    a name together with one plane across or with slices and phases that only a short axis has.
    """
    tilt, view = _tilt(stack, TYPICAL_BASE), _named_view(stack)
    if tilt >= _FARTHEST_DEG:
        return 0
    if tilt < _SHORT_AXIS_DEG:
        return 2 + max(_from_siblings(stack, planes), 0)
    support = _from_siblings(stack, planes) + (2 if stack.ringed else 0)
    support += 1 if view == SHORT_AXIS else 0 if view is None else -2
    support += int(stack.n_slices >= WHOLE_STACK and stack.n_phases >= _WHOLE_CYCLE)
    return support - int(_along_scanner(stack))


def _from_siblings(stack: Stack, planes: Sequence[Stack]) -> int:
    """Return 2 if two planes meet along the normal, 1 if one lies across, -1 if a named one does not."""
    siblings = [plane for plane in planes if plane is not stack and _tilt(plane, stack.normal) > _APART_DEG]
    meeting = [
        line
        for first, second in combinations(siblings, 2)
        if (line := _line(first, second)) is not None and _between(line, stack.normal) < _ACROSS_DEG
    ]
    if meeting:
        return 2
    leanings = [(90 - _tilt(plane, stack.normal), _named_view(plane) in PROTOTYPES) for plane in planes]
    if any(is_named and leaning > _LONG_AXIS_DEG for leaning, is_named in leanings):
        return -1
    return int(any(leaning < _ACROSS_DEG for leaning, _ in leanings))


def _common_line(planes: Sequence[Stack]) -> Point | None:
    """Return the line that most long-axis planes contain; None without two named views, or if it is odd.

    Without a short axis any two planes have a line: their names and the typical axis must agree with it.
    """
    if len({_named_view(plane) for plane in planes} & PROTOTYPES.keys()) < 2:
        return None
    views = [plane for plane in planes if _named_view(plane) in PROTOTYPES]
    lines = [line for pair in combinations(views, 2) if (line := _line(*pair)) is not None]
    lines = [line for line in lines if _between(line, TYPICAL_BASE) < _SHORT_AXIS_DEG]
    if not lines:
        return None
    near = [sum(90 - _tilt(plane, line) < _ACROSS_DEG for plane in views) for line in lines]
    best = int(np.argmax(near))
    return lines[best] if near[best] == len(views) else None


def _line(first: Stack, second: Stack) -> Point | None:
    """Return the direction in which two planes meet; None if they are nearly parallel."""
    line = np.cross(first.normal, second.normal)
    length = float(np.linalg.norm(line))
    return None if length < np.sin(np.radians(_APART_DEG)) else line / length


def _along_scanner(stack: Stack) -> bool:
    return any(_tilt(stack, axis) < _SCANNER_DEG for axis in np.eye(3))


def _tilt(stack: Stack, axis: Point) -> float:
    """Return the angle between a stack's normal and an axis, 0 to 90 degrees."""
    return _between(stack.normal, axis)


def _between(first: Point, second: Point) -> float:
    """Return the angle between two lines in space, 0 to 90 degrees."""
    cosine = abs(float(first @ second)) / float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.degrees(np.arccos(min(cosine, 1.0))))


def _crossing(stacks: Sequence[Stack], frame: HeartFrame) -> Point | None:
    """Return a point on the line where most long-axis planes meet; None if fewer than three meet."""
    planes = [stack for stack in stacks if 90 - _tilt(stack, frame.base) < _LONG_AXIS_DEG]
    crossing: tuple[int, float, Point] | None = None
    for first, second in combinations(planes, 2):
        matrix = np.array([first.normal, second.normal, frame.base])
        if abs(np.linalg.det(matrix)) < 0.3:
            continue
        middles = _middle(first), _middle(second)
        level = float(frame.base @ (middles[0] + middles[1]) / 2)
        point = np.linalg.solve(
            matrix, [float(first.normal @ middles[0]), float(second.normal @ middles[1]), level]
        )
        near = [
            distance
            for distance in (plane_distance(plane, point) for plane in planes)
            if distance < _CONCURRENT_MM
        ]
        candidate = (len(near), -sum(near), point)
        if crossing is None or candidate[:2] > crossing[:2]:
            crossing = candidate
    return crossing[2] if crossing is not None and crossing[0] >= 3 else None


def _middle(stack: Stack) -> Point:
    return stack.centre(stack.n_slices // 2)


def plane_distance(stack: Stack, point: Point) -> float:
    """Return the distance of a point from the middle plane of a stack, mm."""
    return abs(float(stack.normal @ (point - _middle(stack))))


@dataclass(frozen=True, slots=True)
class SeenView:
    """View of a stack by geometry: probability of each view, and the evidence in words."""

    likely: dict[str, float]
    evidence: str


def view_by_geometry(stack: Stack, frame: HeartFrame) -> SeenView | None:
    """Return the probabilities of the four views and of `other`.

    If no stack defines the axis, stacks of fewer than three slices are less certain to be short axis.
    """
    tilt = _tilt(stack, frame.base)
    if frame.known and tilt < _PARALLEL_DEG:
        return _sure("sax", 0.97, f"{stack.n_slices} slices parallel to the short axis ({tilt:.0f} degrees)")
    if not frame.known and tilt < _SHORT_AXIS_DEG:
        if stack.n_slices < _FEWEST_SLICES:
            return _sure("sax", 0.7, f"a plane {tilt:.0f} degrees from a typical short axis")
        return _sure("sax", 0.97, f"{stack.n_slices} slices {tilt:.0f} degrees from a typical short axis")
    leaning = 90 - tilt
    if leaning > _LONG_AXIS_DEG + (0 if frame.known else 4):
        return _sure("other", 0.9, f"leans by {leaning:.0f} degrees on the long axis, which no view does")
    return _long_axis(stack, frame, leaning)


def _sure(view: str, probability: float, evidence: str) -> SeenView:
    views = ("sax", *PROTOTYPES, "other")
    rest = (1 - probability) / (len(views) - 1)
    return SeenView({name: probability if name == view else rest for name in views}, evidence)


def _long_axis(stack: Stack, frame: HeartFrame, leaning: float) -> SeenView:
    angle = frame.angle(np.cross(frame.base, stack.normal)) % 180
    spread = _SPREAD_DEG if frame.known else 1.3 * _SPREAD_DEG
    weights = {view: np.exp(-0.5 * (_apart(angle, at) / spread) ** 2) for view, at in PROTOTYPES.items()}
    evidence = f"a plane at {angle:.0f} degrees about the long axis, leaning by {leaning:.0f}"
    weights["other"] = 0.02
    if frame.axis is not None:
        away = plane_distance(stack, frame.axis)
        through = float(np.exp(-0.5 * (max(away - 4.0, 0.0) / _SPREAD_MM) ** 2))
        weights = {view: weight * (1.0 if view == "other" else through) for view, weight in weights.items()}
        evidence += f", {away:.0f} mm from the axis of the left ventricle"
    else:
        weights["other"] = 0.05
    total = sum(weights.values())
    likely = {view: 0.98 * float(weight / total) + 0.005 for view, weight in weights.items()}
    return SeenView({"sax": 1 - sum(likely.values()), **likely}, evidence)


def _apart(first: float, second: float) -> float:
    """Return the angle between two lines, degrees."""
    return abs((first - second + 90) % 180 - 90)
