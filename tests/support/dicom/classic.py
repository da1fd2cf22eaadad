"""Write Classic MR Image Storage: one file per image."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset

from tests.support.dicom.dialect import Acquisition
from tests.support.dicom.exam import Exam
from tests.support.dicom.general import (
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
from tests.support.dicom.series import CARDIAC, Image, Series, clock


def classic_images(exam: Exam, series: Series) -> Iterator[Dataset]:
    """Yield each image of a series with its pixels, always as the same dataset, changed in place."""
    dataset = general(exam, series, CLASSIC)
    for place, image in enumerate(series.images):
        kind = exam.dialect.acquisitions[image.stack.kind]
        dataset.SOPInstanceUID = exam.uid("image", series.number, place)
        dataset.InstanceNumber = place + 1
        _acquired(exam, image, kind, dataset)
        _timed(exam, series, image, dataset)
        _placed(exam, image, dataset)
        frame = exam.stored(image.stack).stored(image.stack.frames[image.slice, image.phase])
        _shown(exam, series, frame, dataset)
        add_private(exam, dataset, private_words(exam, series, image))
        add_pixels(exam, dataset, frame[None])
        yield dataset


def _acquired(exam: Exam, image: Image, kind: Acquisition, dataset: Dataset) -> None:
    dataset.ImageType = list(kind.image_type)
    dataset.ScanningSequence, dataset.SequenceVariant = list(kind.sequence), list(kind.variant)
    dataset.ScanOptions, dataset.MRAcquisitionType = list(kind.options), "2D"
    dataset.SequenceName = kind.sequence_name
    dataset.RepetitionTime, dataset.EchoTime = number(kind.tr, 3), number(kind.te, 3)
    dataset.FlipAngle, dataset.EchoTrainLength = number(kind.flip, 1), 1
    inversion = image.stack.inversion_ms
    if inversion or kind.ti is not None:
        dataset.InversionTime = number(inversion[image.phase] if inversion else kind.ti or 0.0, 3)
    dataset.AcquisitionDate = dataset.ContentDate = exam.identity.study_date
    dataset.AcquisitionTime = clock(exam.identity.study_time, image.acquired_s)
    dataset.ContentTime = clock(exam.identity.study_time, image.acquired_s + 4.0)


def _timed(exam: Exam, series: Series, image: Image, dataset: Dataset) -> None:
    of, stack = exam.dialect, image.stack
    dataset.TriggerTime = number(image.trigger_ms, of.trigger_decimals)
    dataset.NominalInterval = round(image.hold.rr_ms)
    dataset.HeartRate = round(60_000 / image.hold.rr_ms)
    dataset.AcquisitionNumber = 1 if stack.kind in CARDIAC else image.phase + 1
    dataset.ImagesInAcquisition = len(series.images)
    if stack.kind in CARDIAC:
        dataset.CardiacNumberOfImages = stack.phases
    if stack.kind in of.temporal_position:
        is_timed = stack.kind == "perfusion" or exam.drawn("temporal").chance(0.5)
        dataset.TemporalPositionIdentifier = image.phase + 1 if is_timed else 1
        dataset.NumberOfTemporalPositions = stack.phases if is_timed else 1


def _placed(exam: Exam, image: Image, dataset: Dataset) -> None:
    of, at, spacing = exam.dialect, exam.location(image.stack, image.slice), exam.size.spacing_mm
    dataset.ImagePositionPatient = [number(part, of.position_decimals) for part in at.position]
    dataset.ImageOrientationPatient = [
        number(part, of.cosine_decimals) for part in (*at.along_row, *at.along_column)
    ]
    dataset.PixelSpacing = [number(spacing, 4)] * 2
    dataset.SliceThickness = number(THICKNESS_MM, 1)
    normal = np.cross(at.along_row, at.along_column)
    dataset.SliceLocation = number(float(np.sum(normal * np.array(at.position))), 4)
    if of.spacing_between_slices and image.stack.spacing_mm is not None:
        dataset.SpacingBetweenSlices = number(image.stack.spacing_mm, 4)


def _shown(exam: Exam, series: Series, frame: NDArray[np.int16], dataset: Dataset) -> None:
    centre, width = window(frame)
    if len(exam.dialect.slopes) > 1:
        steep, intercept = slope(exam, series)
        dataset.RescaleSlope, dataset.RescaleIntercept = number(steep, 8), number(intercept, 6)
        dataset.RescaleType = "normalized"
        centre, width = round(steep * centre + intercept), max(round(steep * width), 1)
    dataset.WindowCenter, dataset.WindowWidth = str(centre), str(width)
    dataset.BurnedInAnnotation = "NO"
