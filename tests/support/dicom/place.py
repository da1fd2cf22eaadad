"""Position of planes in the patient, and orientation of their stored matrices."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom.draws import Draws
from cardiolens.phantom.planes import Plane, Vector, scanner

Matrix = NDArray[np.float64]

_TURN_DEGREES, _AWAY_MM = 12.0, 40.0  # maximum rotation and shift of the heart in the scanner
_LPS = np.diag([-1.0, -1.0, 1.0, 1.0])  # NIfTI axes point right and front, DICOM axes left and back


@dataclass(frozen=True)
class Stored:
    """The steps from a stored matrix to the displayed image: transpose, flip rows, flip columns."""

    transpose: bool
    flip_rows: bool
    flip_cols: bool

    def stored(self, displayed: NDArray[np.int16]) -> NDArray[np.int16]:
        """Return the stored matrix (..., row, column) of a displayed one: undo the steps."""
        turned = displayed[..., :, ::-1] if self.flip_cols else displayed
        turned = turned[..., ::-1, :] if self.flip_rows else turned
        return np.ascontiguousarray(turned.swapaxes(-1, -2) if self.transpose else turned)


@dataclass(frozen=True)
class Location:
    """ImagePositionPatient (first pixel) and ImageOrientationPatient (along a row, along a column)."""

    position: tuple[float, ...]
    along_row: tuple[float, ...]
    along_column: tuple[float, ...]


def drawn_storage(draw: Draws) -> Stored:
    return Stored(draw.chance(0.5), draw.chance(0.5), draw.chance(0.5))


def drawn_pose(draw: Draws) -> Matrix:
    """Draw the rigid motion from the NIfTI cohort's to this patient's position, in scanner RAS+ mm."""
    axis = np.array([draw.between(-1, 1) for _ in range(3)])
    axis = axis / max(math.sqrt(float(np.sum(axis * axis))), 1e-6)
    turn = math.radians(draw.between(-_TURN_DEGREES, _TURN_DEGREES))
    x, y, z = (float(part) for part in axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    pose = np.eye(4)
    pose[:3, :3] += math.sin(turn) * cross + (1 - math.cos(turn)) * (np.outer(axis, axis) - np.eye(3))
    pose[:3, 3] = [draw.between(-_AWAY_MM, _AWAY_MM) for _ in range(3)]
    return np.round(pose, 9)


def to_patient(pose: Matrix) -> Matrix:
    """Return the affine from heart coordinates to patient LPS+, mm."""
    return np.asarray(np.round(_LPS @ pose @ scanner(), 9))


def in_heart(patient: Matrix, right: Vector, down: Vector, centre: Vector) -> Plane:
    """Return a plane from patient directions (LPS+) and a centre in heart coordinates."""
    turned = (_vector(np.asarray(way) @ patient[:3, :3]) for way in (right, down))
    return Plane(centre, *turned)


def locate(plane: Plane, patient: Matrix, pixels: int, spacing_mm: float, stored: Stored) -> Location:
    """Return the location of a plane for a given storage of its matrix."""
    right, down = (patient[:3, :3] @ np.array(way) for way in (plane.right, plane.down))
    right, down = (-right if stored.flip_cols else right), (-down if stored.flip_rows else down)
    row, column = (down, right) if stored.transpose else (right, down)
    centre = patient[:3, :3] @ np.array(plane.centre) + patient[:3, 3]
    first = centre - (pixels - 1) / 2 * spacing_mm * (row + column)
    return Location(_vector(first), _vector(row), _vector(column))


def _vector(values: Sequence[float] | NDArray[np.float64]) -> Vector:
    x, y, z = (round(float(value), 9) + 0.0 for value in values)
    return (x, y, z)
