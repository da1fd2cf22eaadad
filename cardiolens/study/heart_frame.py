"""Directions of the heart in the patient, and the display transform that follows from them.

Directions are DICOM's (left, back, head). A short axis is shown with the right ventricle on the image's left
and the anterior wall up (protocol 1.4). A long axis is shown like the phantom's: apex up, and on the image's
right the wall at 30 degrees (four-chamber: lateral), 90 (two-chamber: anterior) or 330 (three-chamber:
inferolateral). These angles are from protocol 1.3; the anatomy has them in this frame, as `right_deg`.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.study.anatomy import View, heart
from cardiolens.study.volume_manifest import DisplayTransform

Point = NDArray[Any]  # three coordinates or components

TYPICAL_BASE = np.array([-0.6, 0.61, 0.5])  # from apex to base: right, back and up
# Degrees, in the heart's frame, of the wall on the image's right of a long axis.
PROTOTYPE_RIGHT = {
    name: view.display.right_deg
    for name, view in heart().views.items()
    if view.slices is None and view.display is not None and view.display.right_deg is not None
}
PROTOTYPES = {name: degrees % 180 for name, degrees in PROTOTYPE_RIGHT.items()}
_UPWARD = np.array([0.0, -0.6, 0.8])  # forward and up
_CLEAR = 0.25  # margin of the best transform over the next: image turned by less than 38 degrees


@dataclass(frozen=True, slots=True)
class HeartFrame:
    """Directions of a heart in the patient, and a point on its long axis if known."""

    base: Point
    right: Point
    up: Point
    axis: Point | None
    known: bool  # True: from a short-axis stack of this study; False: typical directions

    def angle(self, direction: Point) -> float:
        """Return the angle of a direction seen from the apex, in degrees: 0 lateral, 90 anterior."""
        return float(np.degrees(np.arctan2(direction @ self.up, direction @ self.right)))

    def toward(self, degrees: float) -> Point:
        """Return the direction at an angle in degrees."""
        radians = np.radians(degrees)
        turned: Point = np.cos(radians) * self.right + np.sin(radians) * self.up
        return turned


def frame_along(direction: Point | None, axis: Point | None) -> HeartFrame:
    """Return the frame of a heart from the short-axis normal (either sign); None gives a typical heart."""
    base = TYPICAL_BASE if direction is None else direction * (1 if direction @ TYPICAL_BASE > 0 else -1)
    base = base / np.linalg.norm(base)
    up = _UPWARD - (_UPWARD @ base) * base
    up /= np.linalg.norm(up)
    return HeartFrame(base, np.cross(up, -base), up, axis, direction is not None)


@dataclass(frozen=True, slots=True)
class Display:
    """A display transform, and whether it is clearly the best of the eight."""

    transform: DisplayTransform
    clear: bool


def every_transform() -> tuple[DisplayTransform, ...]:
    """Return the eight display transforms."""
    return tuple(
        DisplayTransform(transpose=transpose, flip_rows=flip_rows, flip_cols=flip_cols)
        for transpose, flip_rows, flip_cols in product((False, True), repeat=3)
    )


def directions(i_axis: Point, j_axis: Point, transform: DisplayTransform) -> tuple[Point, Point]:
    """Return image right and image up of a displayed frame, from the directions of the stored axes."""
    down, across = (j_axis, i_axis) if transform.transpose else (i_axis, j_axis)
    return (-across if transform.flip_cols else across), (down if transform.flip_rows else -down)


def best_display(i_axis: Point, j_axis: Point, view: View, frame: HeartFrame) -> Display:
    """Return the transform that best gives a view its standard orientation; axes are unit vectors."""
    return best_transform(i_axis, j_axis, *right_and_up(view, frame))


def best_transform(i_axis: Point, j_axis: Point, right: Point, up: Point) -> Display:
    """Return the transform that best shows the directions `right` and `up` where they belong."""
    scores: list[tuple[float, DisplayTransform]] = []
    for transform in every_transform():
        image_right, image_up = directions(i_axis, j_axis, transform)
        scores.append((float(image_right @ right + image_up @ up), transform))
    scores.sort(key=lambda score: score[0], reverse=True)
    return Display(scores[0][1], scores[0][0] - scores[1][0] > 2 * _CLEAR)


def right_and_up(view: View, frame: HeartFrame) -> tuple[Point, Point]:
    """Return the standard image right and image up of a view, as directions in the patient."""
    if view.slices is not None:
        return frame.right, frame.up
    assert view.display is not None
    assert view.display.right_deg is not None, "checked when the anatomy was read"
    return frame.toward(view.display.right_deg), -frame.base
