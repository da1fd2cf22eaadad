"""Where planes lie in the patient, and which way their matrices are stored."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom.draws import Draws
from cardiolens.phantom.planes import Plane, Vector, scanner

Matrix = NDArray[np.float64]

_TURN_DEGREES, _AWAY_MM = 12.0, 40.0  # of the heart in the scanner, at most
_LPS = np.diag([-1.0, -1.0, 1.0, 1.0])  # NIfTI counts to the right and front, DICOM to the left and back


@dataclass(frozen=True)
class Stored:
    """The steps that make the displayed image of a stored matrix: transpose, flip rows, flip columns."""

    transpose: bool
    flip_rows: bool
    flip_cols: bool

    def stored(self, displayed: NDArray[np.int16]) -> NDArray[np.int16]:
        """The matrix (..., row, column) as stored: the steps backwards."""
        turned = displayed[..., :, ::-1] if self.flip_cols else displayed
        turned = turned[..., ::-1, :] if self.flip_rows else turned
        return np.ascontiguousarray(turned.swapaxes(-1, -2) if self.transpose else turned)


@dataclass(frozen=True)
class Location:
    """ImagePositionPatient and ImageOrientationPatient: the first pixel, along a row, along a column."""

    position: tuple[float, ...]
    along_row: tuple[float, ...]
    along_column: tuple[float, ...]


def drawn_storage(draw: Draws) -> Stored:
    return Stored(draw.chance(0.5), draw.chance(0.5), draw.chance(0.5))


def drawn_pose(draw: Draws) -> Matrix:
    """A rigid motion in scanner RAS+ millimetres: the NIfTI cohort's place to this patient's."""
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
    """Heart coordinates to the patient's LPS+ millimetres."""
    return np.asarray(np.round(_LPS @ pose @ scanner(), 9))


def in_heart(patient: Matrix, right: Vector, down: Vector, centre: Vector) -> Plane:
    """A plane whose directions are the patient's (LPS+) and whose centre is the heart's."""
    turned = (_vector(np.asarray(way) @ patient[:3, :3]) for way in (right, down))
    return Plane(centre, *turned)


def locate(plane: Plane, patient: Matrix, pixels: int, spacing_mm: float, stored: Stored) -> Location:
    """The location of a plane whose matrix is stored in this way."""
    right, down = (patient[:3, :3] @ np.array(way) for way in (plane.right, plane.down))
    right, down = (-right if stored.flip_cols else right), (-down if stored.flip_rows else down)
    row, column = (down, right) if stored.transpose else (right, down)
    centre = patient[:3, :3] @ np.array(plane.centre) + patient[:3, 3]
    first = centre - (pixels - 1) / 2 * spacing_mm * (row + column)
    return Location(_vector(first), _vector(row), _vector(column))


def _vector(values: Sequence[float] | NDArray[np.float64]) -> Vector:
    x, y, z = (round(float(value), 9) + 0.0 for value in values)
    return (x, y, z)
