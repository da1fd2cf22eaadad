"""Enhanced MR Image Storage: one file a series, its frames in any order, told apart by functional groups."""

import numpy as np
from numpy.typing import NDArray
from pydicom.datadict import tag_for_keyword
from pydicom.dataset import Dataset
from pydicom.tag import Tag

from cardiolens.phantom.dicom.dialect import Acquisition
from cardiolens.phantom.dicom.exam import Exam
from cardiolens.phantom.dicom.frames import moment, move_alike, per_frame, shared
from cardiolens.phantom.dicom.general import ENHANCED, add_pixels, add_private, general, private_words
from cardiolens.phantom.dicom.heartbeat import clock
from cardiolens.phantom.dicom.series import CARDIAC, Image, Series

_IN_FRAME_CONTENT = ("StackID", "InStackPositionNumber", "TemporalPositionIndex")


def multiframe_image(exam: Exam, series: Series) -> Dataset:
    """All images of a series as one instance."""
    images, lead = series.images, series.images[0]
    kind = exam.dialect.acquisitions[lead.stack.kind]
    made = general(exam, series, ENHANCED)
    made.SOPInstanceUID = exam.uid("image", series.number)
    made.InstanceNumber = made.AcquisitionNumber = 1
    made.ImageType = list(kind.image_type)
    made.PixelPresentation, made.VolumetricProperties = "MONOCHROME", "VOLUME"
    made.VolumeBasedCalculationTechnique = "NONE"
    components = {exam.dialect.acquisitions[image.stack.kind].component for image in images}
    made.ComplexImageComponent = components.pop() if len(components) == 1 else "MIXED"
    made.AcquisitionContrast = kind.contrast
    _acquired(exam, lead, kind, made)
    _dimensions(exam, series, made)
    frames = np.stack([_frame(exam, image) for image in images])
    groups = [per_frame(exam, series, image) for image in images]
    common = shared(exam, lead, kind)
    move_alike(groups, common, "PlaneOrientationSequence")
    made.SharedFunctionalGroupsSequence = [common]
    made.PerFrameFunctionalGroupsSequence = groups
    made.NumberOfFrames = len(images)
    add_private(exam, made, private_words(exam, series, lead))
    add_pixels(exam, made, frames)
    return made


def _frame(exam: Exam, image: Image) -> NDArray[np.int16]:
    return exam.stored(image.stack).stored(image.stack.frames[image.slice, image.phase])


def _acquired(exam: Exam, lead: Image, kind: Acquisition, made: Dataset) -> None:
    made.AcquisitionDateTime = moment(exam, lead)
    made.ContentDate = exam.identity.study_date
    made.ContentTime = clock(exam.identity.study_time, lead.acquired_s + 4.0)
    made.AcquisitionDuration = 12.0
    made.PulseSequenceName, made.MRAcquisitionType = kind.sequence_name, "2D"
    made.EchoPulseSequence = "SPIN" if "SE" in kind.sequence else "GRADIENT"
    made.MultipleSpinEcho, made.MultiPlanarExcitation = "NO", "NO"
    made.PhaseContrast = "YES" if kind.component == "PHASE" else "NO"
    made.TimeOfFlightContrast, made.ArterialSpinLabelingContrast = "NO", ""
    made.SteadyStatePulseSequence = "FREE_PRECESSION" if lead.stack.sequence == "cine" else "NONE"
    made.EchoPlanarPulseSequence, made.SaturationRecovery = "NO", "NO"
    made.SpectrallySelectedSuppression = "NONE"
    made.OversamplingPhase, made.GeometryOfKSpaceTraversal = "NONE", "RECTILINEAR"
    made.SegmentedKSpaceTraversal, made.RectilinearPhaseEncodeReordering = "PARTIAL", "LINEAR"
    made.CardiacSynchronizationTechnique = "RETROSPECTIVE" if lead.stack.phases > 1 else "PROSPECTIVE"
    made.CardiacSignalSource, made.CardiacRRIntervalSpecified = "ECG", lead.hold.rr_ms
    made.RespiratoryMotionCompensationTechnique = "BREATH_HOLD"
    made.ResonantNucleus, made.KSpaceFiltering, made.ContentQualification = "1H", "NONE", "PRODUCT"
    made.BurnedInAnnotation, made.LossyImageCompression = "NO", "00"
    made.PresentationLUTShape = "IDENTITY"


def _dimensions(exam: Exam, series: Series, made: Dataset) -> None:
    """Say what the numbers of DimensionIndexValues count: stack, slice, time or trigger, and component."""
    organization = Dataset()
    organization.DimensionOrganizationUID = exam.uid("dimensions", series.number)
    made.DimensionOrganizationSequence = [organization]
    pointers = [(name, "FrameContentSequence") for name in _IN_FRAME_CONTENT]
    if series.kind in CARDIAC:
        pointers[2] = ("NominalCardiacTriggerDelayTime", "CardiacSynchronizationSequence")
    if len({image.stack.kind for image in series.images}) > 1:
        pointers.append(("ComplexImageComponent", "MRImageFrameTypeSequence"))
    made.DimensionIndexSequence = [_pointer(exam, series, *pointer) for pointer in pointers]


def _pointer(exam: Exam, series: Series, name: str, group: str) -> Dataset:
    made = Dataset()
    made.DimensionOrganizationUID = exam.uid("dimensions", series.number)
    made.DimensionIndexPointer = Tag(tag_for_keyword(name) or 0)
    made.FunctionalGroupPointer = Tag(tag_for_keyword(group) or 0)
    return made
