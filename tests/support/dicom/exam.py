"""An exam: its options, and the patient, scanner, coordinates and storage that all files of a study share."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cardiolens.config.base import Spec
from cardiolens.phantom.draws import Draws
from cardiolens.phantom.planes import Plane, Size, scanner
from tests.support.dicom.dialect import Dialect, dialect
from tests.support.dicom.patient_identity import Identity, drawn_identity, uid
from tests.support.dicom.stacks import Matrix, Stack, vector

Vendor = Literal["siemens", "ge", "philips", "enhanced"]
TransferSyntax = Literal["explicit", "implicit", "rle", "jpeg2000"]
Share = Annotated[float, Field(ge=0, le=1)]


class ExportSpec(Spec):
    """The options of a phantom cohort as DICOM."""

    vendor: Vendor
    transfer_syntax: TransferSyntax = "explicit"
    wrong_names: Share = 0.0  # share of acquisitions with wrong names
    repeats: Share = 0.0  # share of acquisitions with a failed first try
    habit: str = ""  # what somebody else does to the exam, by its name in data/habits.yaml


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


def locate(plane: Plane, patient: Matrix, pixels: int, spacing_mm: float, stored: Stored) -> Location:
    """Return the location of a plane for a given storage of its matrix."""
    right, down = (patient[:3, :3] @ np.array(way) for way in (plane.right, plane.down))
    right, down = (-right if stored.flip_cols else right), (-down if stored.flip_rows else down)
    row, column = (down, right) if stored.transpose else (right, down)
    centre = patient[:3, :3] @ np.array(plane.centre) + patient[:3, 3]
    first = centre - (pixels - 1) / 2 * spacing_mm * (row + column)
    return Location(vector(first), vector(row), vector(column))


@dataclass(frozen=True)
class Exam:
    """Data that all images of a study share."""

    study_id: str
    seed: str
    spec: ExportSpec
    dialect: Dialect
    identity: Identity
    size: Size
    pose: Matrix  # scanner RAS+ of the NIfTI cohort to scanner RAS+ of this patient
    patient: Matrix  # heart coordinates to LPS+ of the patient

    def uid(self, *parts: object) -> str:
        return uid(self.seed, self.spec.vendor, *parts)

    def drawn(self, *parts: object) -> Draws:
        """Return the independent random stream of one purpose."""
        return Draws("|".join(map(str, (self.seed, self.spec.vendor, *parts))), 0)

    def stored(self, stack: Stack) -> Stored:
        """Return how a stack's matrices are stored: alike for all tries and reconstructions."""
        return drawn_storage(self.drawn("stored", stack.acquisition))

    def location(self, stack: Stack, slice_: int) -> Location:
        return locate(
            stack.planes[slice_], self.patient, self.size.pixels, self.size.spacing_mm, self.stored(stack)
        )


def exam_of(study_id: str, seed: str, spec: ExportSpec, size: Size) -> Exam:
    """Return the exam of a study; `seed` is the seed of the study."""
    pose = drawn_pose(Draws(f"{seed}|pose", 0))
    of = dialect(spec.vendor)
    return Exam(study_id, seed, spec, of, drawn_identity(seed), size, pose, to_patient(pose))
