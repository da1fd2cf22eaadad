"""Enhanced MR Image Storage: one file a series, its frames in any order, told apart by functional groups."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom.datadict import tag_for_keyword
from pydicom.dataset import Dataset
from pydicom.tag import Tag

from cardiolens.phantom.dicom.dialect import Acquisition
from cardiolens.phantom.dicom.exam import Exam
from cardiolens.phantom.dicom.general import (
    ENHANCED,
    THICKNESS_MM,
    add_pixels,
    add_private,
    general,
    number,
    private_words,
    slope,
    window,
)
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
    groups = [_per_frame(exam, series, image) for image in images]
    shared = _shared(exam, lead, kind)
    _move_alike(groups, shared, "PlaneOrientationSequence")
    made.SharedFunctionalGroupsSequence = [shared]
    made.PerFrameFunctionalGroupsSequence = groups
    made.NumberOfFrames = len(images)
    add_private(exam, made, private_words(exam, series, lead))
    add_pixels(exam, made, frames)
    return made


def _frame(exam: Exam, image: Image) -> NDArray[np.int16]:
    return exam.stored(image.stack).stored(image.stack.frames[image.slice, image.phase])


def _acquired(exam: Exam, lead: Image, kind: Acquisition, made: Dataset) -> None:
    made.AcquisitionDateTime = _moment(exam, lead)
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


def _shared(exam: Exam, lead: Image, kind: Acquisition) -> Dataset:
    """Functional groups that all frames have in common."""
    measures = _item(
        PixelSpacing=[number(exam.size.spacing_mm, 4)] * 2, SliceThickness=number(THICKNESS_MM, 1)
    )
    if lead.stack.spacing_mm is not None:
        measures.SpacingBetweenSlices = number(lead.stack.spacing_mm, 4)
    timing = _item(
        RepetitionTime=number(kind.tr, 3),
        FlipAngle=number(kind.flip, 1),
        EchoTrainLength=1,
        RFEchoTrainLength=1,
        GradientEchoTrainLength=1,
    )
    anatomy = _item(FrameLaterality="U", AnatomicRegionSequence=[_code("80891009", "SCT", "Heart")])
    made = Dataset()
    made.PixelMeasuresSequence, made.FrameAnatomySequence = [measures], [anatomy]
    made.MRTimingAndRelatedParametersSequence = [timing]
    made.MREchoSequence = [_item(EffectiveEchoTime=kind.te)]
    return made


def _per_frame(exam: Exam, series: Series, image: Image) -> Dataset:
    kind, at = exam.dialect.acquisitions[image.stack.kind], exam.location(image.stack, image.slice)
    of, made = exam.dialect, Dataset()
    made.FrameContentSequence = [_content(exam, series, image)]
    position = [number(part, of.position_decimals) for part in at.position]
    cosines = [number(part, of.cosine_decimals) for part in (*at.along_row, *at.along_column)]
    made.PlanePositionSequence = [_item(ImagePositionPatient=position)]
    made.PlaneOrientationSequence = [_item(ImageOrientationPatient=cosines)]
    made.CardiacSynchronizationSequence = [_synchronized(image)]
    made.MRImageFrameTypeSequence = [
        _item(
            FrameType=list(kind.image_type),
            PixelPresentation="MONOCHROME",
            VolumetricProperties="VOLUME",
            VolumeBasedCalculationTechnique="NONE",
            ComplexImageComponent=kind.component,
            AcquisitionContrast=kind.contrast,
        )
    ]
    made.MRModifierSequence = [_modified(image, kind)]
    steep, intercept = slope(exam, series)
    scaled = _item(RescaleSlope=number(steep, 8), RescaleIntercept=number(intercept, 6), RescaleType="US")
    made.PixelValueTransformationSequence = [scaled]
    centre, width = window(image.stack.frames[image.slice, image.phase])
    shown = round(steep * centre + intercept), max(round(steep * width), 1)
    made.FrameVOILUTSequence = [_item(WindowCenter=str(shown[0]), WindowWidth=str(shown[1]))]
    return made


def _content(exam: Exam, series: Series, image: Image) -> Dataset:
    slices = list(dict.fromkeys(one.slice for one in sorted(series.images, key=lambda one: one.acquired_s)))
    stack_number, place = (image.slice + 1, 1) if image.stack.through else (1, slices.index(image.slice) + 1)
    indices = [stack_number, place, image.phase + 1]
    if len({one.stack.kind for one in series.images}) > 1:
        indices.append(1 + (image.stack.kind == "psir"))
    return _item(
        FrameAcquisitionNumber=1,
        FrameAcquisitionDateTime=_moment(exam, image),
        FrameReferenceDateTime=_moment(exam, image),
        FrameAcquisitionDuration=12.0,
        StackID=str(stack_number),
        InStackPositionNumber=place,
        TemporalPositionIndex=image.phase + 1,
        DimensionIndexValues=indices,
    )


def _synchronized(image: Image) -> Dataset:
    return _item(
        NominalCardiacTriggerDelayTime=image.trigger_ms,
        ActualCardiacTriggerDelayTime=image.trigger_ms,
        RRIntervalTimeNominal=image.hold.rr_ms,
        CardiacCyclePosition="UNDETERMINED",
    )


def _modified(image: Image, kind: Acquisition) -> Dataset:
    inverted = kind.ti is not None or bool(image.stack.inversion_ms)
    made = _item(InversionRecovery="YES" if inverted else "NO", FlowCompensation="NONE", Spoiling="NONE")
    made.T2Preparation, made.SpatialPresaturation = "NO", "NONE"
    made.PartialFourier, made.ParallelAcquisition = "NO", "NO"
    if inverted:
        times = image.stack.inversion_ms
        made.InversionTimes = [times[image.phase] if times else kind.ti]
    return made


def _move_alike(groups: list[Dataset], shared: Dataset, name: str) -> None:
    """Move a functional group to the shared ones where it is the same in all frames."""
    if all(getattr(group, name) == getattr(groups[0], name) for group in groups):
        setattr(shared, name, getattr(groups[0], name))
        for group in groups:
            delattr(group, name)


def _moment(exam: Exam, image: Image) -> str:
    return exam.identity.study_date + clock(exam.identity.study_time, image.acquired_s)


def _code(value: str, scheme: str, meaning: str) -> Dataset:
    return _item(CodeValue=value, CodingSchemeDesignator=scheme, CodeMeaning=meaning)


def _item(**values: Any) -> Dataset:
    made = Dataset()
    for name, value in values.items():
        setattr(made, name, value)
    return made
