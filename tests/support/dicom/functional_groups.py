"""Functional groups of multi-frame images: shared by all frames, and per frame."""

from typing import Any

from pydicom.dataset import Dataset

from tests.support.dicom.dialect import Acquisition
from tests.support.dicom.exam import Exam
from tests.support.dicom.general import THICKNESS_MM, number, slope, window
from tests.support.dicom.heartbeat import clock
from tests.support.dicom.series import Image, Series


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
