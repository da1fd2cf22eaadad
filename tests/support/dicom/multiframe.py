"""Write Enhanced MR Image Storage: one file per series; functional groups identify its unordered frames."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom.datadict import tag_for_keyword
from pydicom.dataset import Dataset
from pydicom.tag import Tag

from tests.support.dicom.dialect import Acquisition
from tests.support.dicom.exam import Exam
from tests.support.dicom.general import (
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
from tests.support.dicom.series import CARDIAC, Image, Series, clock


def shared(exam: Exam, lead: Image, kind: Acquisition) -> Dataset:
    """Return the functional groups that all frames share."""
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
    dataset = Dataset()
    dataset.PixelMeasuresSequence, dataset.FrameAnatomySequence = [measures], [anatomy]
    dataset.MRTimingAndRelatedParametersSequence = [timing]
    dataset.MREchoSequence = [_item(EffectiveEchoTime=kind.te)]
    return dataset


def per_frame(exam: Exam, series: Series, image: Image) -> Dataset:
    """Return the functional groups of one frame."""
    kind, at = exam.dialect.acquisitions[image.stack.kind], exam.location(image.stack, image.slice)
    of, dataset = exam.dialect, Dataset()
    dataset.FrameContentSequence = [_content(exam, series, image)]
    position = [number(part, of.position_decimals) for part in at.position]
    cosines = [number(part, of.cosine_decimals) for part in (*at.along_row, *at.along_column)]
    dataset.PlanePositionSequence = [_item(ImagePositionPatient=position)]
    dataset.PlaneOrientationSequence = [_item(ImageOrientationPatient=cosines)]
    dataset.CardiacSynchronizationSequence = [_synchronized(image)]
    dataset.MRImageFrameTypeSequence = [
        _item(
            FrameType=list(kind.image_type),
            PixelPresentation="MONOCHROME",
            VolumetricProperties="VOLUME",
            VolumeBasedCalculationTechnique="NONE",
            ComplexImageComponent=kind.component,
            AcquisitionContrast=kind.contrast,
        )
    ]
    dataset.MRModifierSequence = [_modified(image, kind)]
    steep, intercept = slope(exam, series)
    scaled = _item(RescaleSlope=number(steep, 8), RescaleIntercept=number(intercept, 6), RescaleType="US")
    dataset.PixelValueTransformationSequence = [scaled]
    centre, width = window(image.stack.frames[image.slice, image.phase])
    shown = round(steep * centre + intercept), max(round(steep * width), 1)
    dataset.FrameVOILUTSequence = [_item(WindowCenter=str(shown[0]), WindowWidth=str(shown[1]))]
    return dataset


def _content(exam: Exam, series: Series, image: Image) -> Dataset:
    slices = list(dict.fromkeys(one.slice for one in sorted(series.images, key=lambda one: one.acquired_s)))
    stack_number, place = (image.slice + 1, 1) if image.stack.through else (1, slices.index(image.slice) + 1)
    indices = [stack_number, place, image.phase + 1]
    if len({one.stack.kind for one in series.images}) > 1:
        indices.append(1 + (image.stack.kind == "psir"))
    return _item(
        FrameAcquisitionNumber=1,
        FrameAcquisitionDateTime=moment(exam, image),
        FrameReferenceDateTime=moment(exam, image),
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
    item = _item(InversionRecovery="YES" if inverted else "NO", FlowCompensation="NONE", Spoiling="NONE")
    item.T2Preparation, item.SpatialPresaturation = "NO", "NONE"
    item.PartialFourier, item.ParallelAcquisition = "NO", "NO"
    if inverted:
        times = image.stack.inversion_ms
        item.InversionTimes = [times[image.phase] if times else kind.ti]
    return item


def move_alike(groups: list[Dataset], shared: Dataset, name: str) -> None:
    """Move a functional group into `shared` if it is equal in all frames."""
    if all(getattr(group, name) == getattr(groups[0], name) for group in groups):
        setattr(shared, name, getattr(groups[0], name))
        for group in groups:
            delattr(group, name)


def moment(exam: Exam, image: Image) -> str:
    """Return the acquisition time of an image in DICOM's combined date-time format."""
    return exam.identity.study_date + clock(exam.identity.study_time, image.acquired_s)


def _code(value: str, scheme: str, meaning: str) -> Dataset:
    return _item(CodeValue=value, CodingSchemeDesignator=scheme, CodeMeaning=meaning)


def _item(**values: Any) -> Dataset:
    item = Dataset()
    for name, value in values.items():
        setattr(item, name, value)
    return item


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
