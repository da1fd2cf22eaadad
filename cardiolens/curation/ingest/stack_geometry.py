"""Classify views by the angle between their planes and the heart's long axis, in patient coordinates.

The heart's frame has three directions: `base` along the long axis, `up` (anterior in a displayed short axis)
and `right` (lateral). The angles of long-axis planes are those of protocol 1.3 rotated into this frame:
four-, two- and three-chamber planes lie near 8, 67 and 128 degrees. The shipped phantom has 3, 63 and 123,
one real study has 12, 70 and 133.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cardiolens.curation.ingest.stack import Point, Stack
from cardiolens.study.heart_frame import PROTOTYPES, TYPICAL_BASE, HeartFrame, frame_along

_SPREAD_DEG, _SPREAD_MM = 13.0, 8.0
_SHORT_AXIS_DEG = 35.0  # between a stack's normal and the typical axis
_PARALLEL_DEG = 15.0  # between a stack's normal and the known axis
_LONG_AXIS_DEG = 25.0  # between a plane and the axis
_FEWEST_SLICES = 3  # of a stack that defines the axis
_CONCURRENT_MM = 12.0


def heart_frame(stacks: Sequence[Stack], centre: Point | None) -> HeartFrame:
    """Return the heart's frame from the largest short-axis stack, else a typical frame.

    `centre` is the centre of the ventricle, if known.
    """
    short = [
        stack
        for stack in stacks
        if stack.n_slices >= _FEWEST_SLICES and _tilt(stack, TYPICAL_BASE) < _SHORT_AXIS_DEG
    ]
    direction = max(short, key=lambda stack: (stack.n_slices, stack.n_phases)).normal if short else None
    frame = frame_along(direction, centre)
    if centre is not None or not short:
        return frame
    return HeartFrame(frame.base, frame.right, frame.up, _crossing(stacks, frame), True)


def _tilt(stack: Stack, axis: Point) -> float:
    """Return the angle between a stack's normal and an axis, 0 to 90 degrees."""
    cosine = abs(float(stack.normal @ axis)) / float(np.linalg.norm(axis))
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
