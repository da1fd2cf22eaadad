"""Write Enhanced MR Image Storage: one file per series; functional groups identify its unordered frames."""

import numpy as np
from numpy.typing import NDArray
from pydicom.datadict import tag_for_keyword
from pydicom.dataset import Dataset
from pydicom.tag import Tag

from tests.support.dicom.dialect import Acquisition
from tests.support.dicom.exam import Exam
from tests.support.dicom.functional_groups import moment, move_alike, per_frame, shared
from tests.support.dicom.general import ENHANCED, add_pixels, add_private, general, private_words
from tests.support.dicom.heartbeat import clock
from tests.support.dicom.series import CARDIAC, Image, Series

_IN_FRAME_CONTENT = ("StackID", "InStackPositionNumber", "TemporalPositionIndex")


def multiframe_image(exam: Exam, series: Series) -> Dataset:
    """Return all images of a series as one instance."""
    images, lead = series.images, series.images[0]
    kind = exam.dialect.acquisitions[lead.stack.kind]
    dataset = general(exam, series, ENHANCED)
    dataset.SOPInstanceUID = exam.uid("image", series.number)
    dataset.InstanceNumber = dataset.AcquisitionNumber = 1
    dataset.ImageType = list(kind.image_type)
    for keyword, value in exam.dialect.constants.items():
        setattr(dataset, keyword, value)
    components = {exam.dialect.acquisitions[image.stack.kind].component for image in images}
    dataset.ComplexImageComponent = components.pop() if len(components) == 1 else "MIXED"
    dataset.AcquisitionContrast = kind.contrast
    _acquired(exam, lead, kind, dataset)
    _dimensions(exam, series, dataset)
    frames = np.stack([_frame(exam, image) for image in images])
    groups = [per_frame(exam, series, image) for image in images]
    common = shared(exam, lead, kind)
    move_alike(groups, common, "PlaneOrientationSequence")
    dataset.SharedFunctionalGroupsSequence = [common]
    dataset.PerFrameFunctionalGroupsSequence = groups
    dataset.NumberOfFrames = len(images)
    add_private(exam, dataset, private_words(exam, series, lead))
    add_pixels(exam, dataset, frames)
    return dataset


def _frame(exam: Exam, image: Image) -> NDArray[np.int16]:
    return exam.stored(image.stack).stored(image.stack.frames[image.slice, image.phase])


def _acquired(exam: Exam, lead: Image, kind: Acquisition, dataset: Dataset) -> None:
    dataset.AcquisitionDateTime = moment(exam, lead)
    dataset.ContentDate = exam.identity.study_date
    dataset.ContentTime = clock(exam.identity.study_time, lead.acquired_s + 4.0)
    dataset.PulseSequenceName = kind.sequence_name
    dataset.EchoPulseSequence = "SPIN" if "SE" in kind.sequence else "GRADIENT"
    dataset.PhaseContrast = "YES" if kind.component == "PHASE" else "NO"
    dataset.SteadyStatePulseSequence = "FREE_PRECESSION" if lead.stack.sequence == "cine" else "NONE"
    dataset.CardiacSynchronizationTechnique = "RETROSPECTIVE" if lead.stack.phases > 1 else "PROSPECTIVE"
    dataset.CardiacRRIntervalSpecified = lead.hold.rr_ms


def _dimensions(exam: Exam, series: Series, dataset: Dataset) -> None:
    """Declare the dimensions of DimensionIndexValues: stack, slice, time or trigger, and component."""
    organization = Dataset()
    organization.DimensionOrganizationUID = exam.uid("dimensions", series.number)
    dataset.DimensionOrganizationSequence = [organization]
    pointers = [(name, "FrameContentSequence") for name in _IN_FRAME_CONTENT]
    if series.kind in CARDIAC:
        pointers[2] = ("NominalCardiacTriggerDelayTime", "CardiacSynchronizationSequence")
    if len({image.stack.kind for image in series.images}) > 1:
        pointers.append(("ComplexImageComponent", "MRImageFrameTypeSequence"))
    dataset.DimensionIndexSequence = [_pointer(exam, series, *pointer) for pointer in pointers]


def _pointer(exam: Exam, series: Series, name: str, group: str) -> Dataset:
    pointer = Dataset()
    pointer.DimensionOrganizationUID = exam.uid("dimensions", series.number)
    pointer.DimensionIndexPointer = Tag(tag_for_keyword(name) or 0)
    pointer.FunctionalGroupPointer = Tag(tag_for_keyword(group) or 0)
    return pointer
