"""An exam: the patient, scanner and coordinates that all files of a study share."""

from dataclasses import dataclass

from cardiolens.phantom.draws import Draws
from cardiolens.phantom.planes import Size
from tests.support.dicom.dialect import Dialect, dialect
from tests.support.dicom.patient_identity import Identity, drawn_identity, uid
from tests.support.dicom.place import (
    Location,
    Matrix,
    Stored,
    drawn_pose,
    drawn_storage,
    locate,
    to_patient,
)
from tests.support.dicom.spec import ExportSpec
from tests.support.dicom.stacks import Stack


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
