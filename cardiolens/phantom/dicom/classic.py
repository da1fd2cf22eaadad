"""Classic MR Image Storage: one file an image."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset

from cardiolens.phantom.dicom.dialect import Acquisition
from cardiolens.phantom.dicom.exam import Exam
from cardiolens.phantom.dicom.general import (
    CLASSIC,
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


def classic_images(exam: Exam, series: Series) -> Iterator[Dataset]:
    """Yield every image of a series with its pixels: the same dataset again and again, changed in place."""
    made = general(exam, series, CLASSIC)
    for place, image in enumerate(series.images):
        kind = exam.dialect.acquisitions[image.stack.kind]
        made.SOPInstanceUID = exam.uid("image", series.number, place)
        made.InstanceNumber = place + 1
        _acquired(exam, image, kind, made)
        _timed(exam, series, image, made)
        _placed(exam, image, made)
        frame = exam.stored(image.stack).stored(image.stack.frames[image.slice, image.phase])
        _shown(exam, series, frame, made)
        add_private(exam, made, private_words(exam, series, image))
        add_pixels(exam, made, frame[None])
        yield made


def _acquired(exam: Exam, image: Image, kind: Acquisition, made: Dataset) -> None:
    made.ImageType = list(kind.image_type)
    made.ScanningSequence, made.SequenceVariant = list(kind.sequence), list(kind.variant)
    made.ScanOptions, made.MRAcquisitionType = list(kind.options), "2D"
    made.SequenceName = kind.sequence_name
    made.RepetitionTime, made.EchoTime = number(kind.tr, 3), number(kind.te, 3)
    made.FlipAngle, made.EchoTrainLength = number(kind.flip, 1), 1
    inversion = image.stack.inversion_ms
    if inversion or kind.ti is not None:
        made.InversionTime = number(inversion[image.phase] if inversion else kind.ti or 0.0, 3)
    made.AcquisitionDate = made.ContentDate = exam.identity.study_date
    made.AcquisitionTime = clock(exam.identity.study_time, image.acquired_s)
    made.ContentTime = clock(exam.identity.study_time, image.acquired_s + 4.0)


def _timed(exam: Exam, series: Series, image: Image, made: Dataset) -> None:
    of, stack = exam.dialect, image.stack
    made.TriggerTime = number(image.trigger_ms, of.trigger_decimals)
    made.NominalInterval = round(image.hold.rr_ms)
    made.HeartRate = round(60_000 / image.hold.rr_ms)
    made.AcquisitionNumber = 1 if stack.kind in CARDIAC else image.phase + 1
    made.ImagesInAcquisition = len(series.images)
    if stack.kind in CARDIAC:
        made.CardiacNumberOfImages = stack.phases
    if stack.kind in of.temporal_position:
        told = stack.kind == "perfusion" or exam.drawn("temporal").chance(0.5)
        made.TemporalPositionIdentifier = image.phase + 1 if told else 1
        made.NumberOfTemporalPositions = stack.phases if told else 1


def _placed(exam: Exam, image: Image, made: Dataset) -> None:
    of, at, spacing = exam.dialect, exam.location(image.stack, image.slice), exam.size.spacing_mm
    made.ImagePositionPatient = [number(part, of.position_decimals) for part in at.position]
    made.ImageOrientationPatient = [
        number(part, of.cosine_decimals) for part in (*at.along_row, *at.along_column)
    ]
    made.PixelSpacing = [number(spacing, 4)] * 2
    made.SliceThickness = number(THICKNESS_MM, 1)
    normal = np.cross(at.along_row, at.along_column)
    made.SliceLocation = number(float(np.sum(normal * np.array(at.position))), 4)
    if of.spacing_between_slices and image.stack.spacing_mm is not None:
        made.SpacingBetweenSlices = number(image.stack.spacing_mm, 4)


def _shown(exam: Exam, series: Series, frame: NDArray[np.int16], made: Dataset) -> None:
    centre, width = window(frame)
    if len(exam.dialect.slopes) > 1:
        steep, intercept = slope(exam, series)
        made.RescaleSlope, made.RescaleIntercept = number(steep, 8), number(intercept, 6)
        made.RescaleType = "normalized"
        centre, width = round(steep * centre + intercept), max(round(steep * width), 1)
    made.WindowCenter, made.WindowWidth = str(centre), str(width)
    made.BurnedInAnnotation = "NO"
