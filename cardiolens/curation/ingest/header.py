"""DICOM headers as one record per frame; only an allow-list of elements is read.

A multi-frame object stores common elements in SharedFunctionalGroupsSequence and the others in
PerFrameFunctionalGroupsSequence (PS3.3 C.7.6.16); here every frame record holds both.
"""

import math
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from pydicom.datadict import keyword_for_tag
from pydicom.dataset import Dataset
from pydicom.multival import MultiValue

from cardiolens.base.untrusted import dicom_file
from cardiolens.base.untrusted.file_place import Place
from cardiolens.base.untrusted.gzip_stream import TooLargeError
from cardiolens.base.untrusted.zip_archive import BrokenArchiveError
from cardiolens.curation.ingest.image import Identity, Image, Person, RejectedError, Vector
from cardiolens.curation.ingest.reasons import Reason

SMALLEST, LARGEST = 16, 4096  # pixels per side
LARGEST_SCALE = 1e30  # of a slope or intercept: NIfTI stores 32-bit floats
FINEST_MM = 0.01  # pixel spacing; finer values are errors and would round to 0 when written
_BITS = (8, 16, 32)
_PARALLEL = 0.02  # tolerance of unit length and orthogonality of a plane's directions
_NOT_IMAGES = (
    "1.2.840.10008.5.1.4.1.1.104",  # encapsulated documents
    "1.2.840.10008.5.1.4.1.1.88",  # structured reports
    "1.2.840.10008.5.1.4.1.1.11",  # presentation states
    "1.2.840.10008.5.1.4.1.1.66",  # raw data, registrations, segmentations
    "1.2.840.10008.5.1.4.1.1.9",  # wave forms
    "1.2.840.10008.1.3.10",  # directory
    "1.2.840.10008.5.1.4.1.1.4.2",  # spectroscopy
)
_PHILIPS = 0x2005, "Philips MR Imaging DD 001", 0x0D, 0x0E  # group, creator, scale intercept and slope
_PRIVATE_VELOCITY = (  # group, creator, element
    (0x0019, "GEMS_ACQU_01", 0xCC),
    (0x2001, "Philips Imaging DD 001", 0x1A),
)
_GE_COMPONENT = 0x0043, "GEMS_PARM_01", 0x2F
_GE_COMPONENTS = "MPRI"  # by its values 0 to 3
_LARGEST = 1e30  # of any number of a header: unset elements of doubles hold values like 1.8e308
_LEFT_IN_TYPE = "MOSAIC"  # Siemens XA30 takes tiles apart into frames and leaves the word (dcm2niix #553)
_SECONDARY = "1.2.840.10008.5.1.4.1.1.7"


def read_images(place: Place) -> list[Image]:
    """Read the frame records of a file; RejectedError if the file has no usable frame."""
    dataset = read_dataset(place, pixels=False)
    with _broken(Reason.BROKEN_HEADER):
        _check_kind(dataset)
        _check_pixels(dataset)
        if "PerFrameFunctionalGroupsSequence" in dataset:
            return list(_multi_frame(place, dataset))
        if _int(dataset, "NumberOfFrames", 1) > 1:
            raise RejectedError(Reason.NO_POSITION, "many frames and no positions of single frames")
        return [_image(place, 0, (dataset,))]


def read_dataset(place: Place, *, pixels: bool) -> Dataset:
    """Parse the DICOM file at a place; RejectedError if it is damaged or not DICOM."""
    with _broken(Reason.BROKEN_HEADER):
        try:
            return dicom_file.read(place, pixels=pixels)
        except dicom_file.NotDicomError:
            raise RejectedError(Reason.NOT_DICOM) from None
        except TooLargeError:
            raise RejectedError(Reason.TOO_LARGE) from None
        except BrokenArchiveError as error:
            raise RejectedError(Reason.BROKEN_ARCHIVE, str(error)) from None


@contextmanager
def _broken(reason: Reason) -> Iterator[None]:
    """Turn pydicom's errors on a damaged file into one reason; drop messages, which quote the header."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (RejectedError, MemoryError):
        raise
    except OSError as error:
        raise RejectedError(Reason.BROKEN_HEADER if error.errno is None else Reason.UNREADABLE) from None
    except Exception as error:  # noqa: BLE001 - pydicom raises a dozen kinds for damaged files
        raise RejectedError(reason, type(error).__name__) from None


def _check_kind(dataset: Dataset) -> None:
    kind = str(dataset.get("SOPClassUID", ""))
    modality = str(dataset.get("Modality", "")).upper()
    if not kind and not modality:
        raise RejectedError(Reason.BROKEN_HEADER, "neither SOP class nor modality")
    if kind.startswith(_NOT_IMAGES) or modality in ("SR", "PR", "KO", "DOC", "SEG", "RTSTRUCT", "AU", "ECG"):
        raise RejectedError(Reason.NOT_AN_IMAGE)
    if kind.startswith(_SECONDARY):
        raise RejectedError(Reason.SECONDARY_CAPTURE)
    if modality != "MR":
        raise RejectedError(Reason.NOT_MR)
    if not (str(dataset.get("StudyInstanceUID", "")) and str(dataset.get("SeriesInstanceUID", ""))):
        raise RejectedError(Reason.NO_STUDY)
    if str(dataset.get("BurnedInAnnotation", "")).upper() == "YES":
        raise RejectedError(Reason.BURNED_IN_TEXT)


def _check_pixels(dataset: Dataset) -> None:
    if _int(dataset, "SamplesPerPixel", 1) != 1 or str(
        dataset.get("PhotometricInterpretation", "MONOCHROME2")
    ) not in ("MONOCHROME1", "MONOCHROME2"):
        raise RejectedError(Reason.COLOUR)
    sides = _int(dataset, "Rows", 0), _int(dataset, "Columns", 0)
    if sides == (0, 0):
        raise RejectedError(Reason.NO_PIXELS)
    if not all(SMALLEST <= side <= LARGEST for side in sides):
        raise RejectedError(Reason.BAD_MATRIX, f"{sides[0]} x {sides[1]}")
    allocated, stored = _int(dataset, "BitsAllocated", 0), _int(dataset, "BitsStored", 0)
    high = _int(dataset, "HighBit", stored - 1)
    if allocated not in _BITS or not 1 <= stored <= allocated or high != stored - 1:
        raise RejectedError(Reason.BAD_BITS)
    if _int(dataset, "PixelRepresentation", 0) not in (0, 1):
        raise RejectedError(Reason.BAD_BITS)


def _multi_frame(place: Place, dataset: Dataset) -> Iterator[Image]:
    count = _int(dataset, "NumberOfFrames", 0)
    frames = dataset.PerFrameFunctionalGroupsSequence
    if count < 1 or len(frames) != count:
        raise RejectedError(Reason.BROKEN_HEADER, "number of frames and frame records differ")
    shared = list(dataset.get("SharedFunctionalGroupsSequence") or [])[:1]
    common = [item for group in shared for item in _items(group)]
    for number, frame in enumerate(frames):
        image = _image(place, number, (*_items(frame), *common, dataset))
        types = tuple(word for word in image.image_type if word != _LEFT_IN_TYPE)
        yield replace(image, image_type=types)


def _items(group: Dataset) -> list[Dataset]:
    """Return the first item of each functional group."""
    return [element.value[0] for element in group if element.VR == "SQ" and element.value]


def _image(place: Place, frame: int, parts: tuple[Dataset, ...]) -> Image:
    header = parts[-1]
    rows, columns = _plane(parts)
    spacing = _numbers(parts, "PixelSpacing", 2)
    if spacing is None or not all(FINEST_MM < step < 100 for step in spacing):
        raise RejectedError(Reason.NO_SPACING)
    slope = _number(parts, "RescaleSlope", 1.0)
    intercept = _number(parts, "RescaleIntercept", 0.0)
    if slope is None or intercept is None or not 1 / LARGEST_SCALE < abs(slope) < LARGEST_SCALE:
        raise RejectedError(Reason.BAD_RESCALE)
    if abs(intercept) > LARGEST_SCALE:
        raise RejectedError(Reason.BAD_RESCALE)
    trigger = _number(parts, "TriggerTime")
    if trigger is None:
        trigger = _number(parts, "NominalCardiacTriggerDelayTime")
    number = _whole_number(parts, "InstanceNumber")
    tags = list(header.keys())  # iterating the dataset itself would parse every element
    return Image(
        place=place,
        frame=frame,
        identity=_identity(header, frame),
        person=_person(parts),
        rows=_int(header, "Rows", 0),
        columns=_int(header, "Columns", 0),
        spacing=(spacing[0], spacing[1]),
        position=_position(parts),
        row_direction=rows,
        column_direction=columns,
        slope=slope,
        intercept=intercept,
        maker_scale=_maker_scale(parts),
        series_number=_whole_number((header,), "SeriesNumber") or 0,
        acquisition=_whole_number(parts, "AcquisitionNumber") or 0,
        instance_number=(number or 0) * 100_000 + frame,
        description=_text(header, "SeriesDescription"),
        protocol=_text(header, "ProtocolName"),
        sequence_name=_text(header, "SequenceName") or _text(header, "PulseSequenceName"),
        image_type=_words(parts, "ImageType") + _words(parts, "FrameType"),
        scanning=_words(parts, "ScanningSequence") + _words(parts, "EchoPulseSequence"),
        variant=_words(parts, "SequenceVariant"),
        options=_words(parts, "ScanOptions"),
        component=_component(parts),
        thickness=_number(parts, "SliceThickness"),
        trigger=trigger,
        temporal=_whole_number(parts, "TemporalPositionIdentifier")
        or _whole_number(parts, "TemporalPositionIndex"),
        clock=_clock(parts),
        inversion=_inversion(parts),
        echo=_number(parts, "EchoTime") or _number(parts, "EffectiveEchoTime"),
        flip=_number(parts, "FlipAngle"),
        velocity=_velocity(parts),
        phases_declared=_whole_number(parts, "CardiacNumberOfImages"),
        temporals_declared=_whole_number(parts, "NumberOfTemporalPositions"),
        images_declared=_whole_number(parts, "ImagesInAcquisition"),
        beat=_number(parts, "NominalInterval") or _number(parts, "RRIntervalTimeNominal"),
        apart=_number(parts, "SpacingBetweenSlices"),
        tags=tuple(sorted({_keyword(tag) for tag in tags})) if frame == 0 else (),
    )


def _maker_scale(parts: tuple[Dataset, ...]) -> tuple[float, float] | None:
    """Return slope and intercept that undo Philips' private scaling; None for other vendors.

    A stored value is intensity * scale slope + scale intercept. The rescale slope is chosen per series for
    display on the console and is not comparable between series.
    """
    group, creator, *elements = _PHILIPS
    if not _text(parts[-1], "Manufacturer").lower().startswith("philips"):
        return None
    for part in parts:
        if not any(tag >> 16 == group for tag in part.keys()):  # noqa: SIM118 - values would be parsed
            continue
        try:
            block = part.private_block(group, creator)
            intercept, slope = (float(block[element].value) for element in elements)
        except (KeyError, TypeError, ValueError):
            continue
        if math.isfinite(slope) and slope > 0 and math.isfinite(intercept):
            return 1 / slope, 0.0 - intercept / slope
    return None


def _keyword(tag: Any) -> str:
    return "private" if tag.is_private else keyword_for_tag(tag) or "unknown"


def _identity(header: Dataset, frame: int) -> Identity:
    instance = _text(header, "SOPInstanceUID")
    return Identity(
        patient=_text(header, "PatientID") or _text(header, "PatientName"),
        study=_text(header, "StudyInstanceUID"),
        series=_text(header, "SeriesInstanceUID"),
        instance=f"{instance}#{frame}" if instance else "",
        accession=_text(header, "AccessionNumber"),
        date=_text(header, "StudyDate"),
        birth_date=_text(header, "PatientBirthDate"),
        device=_text(header, "DeviceSerialNumber"),
        height_m=_number((header,), "PatientSize"),
        weight_kg=_number((header,), "PatientWeight"),
    )


def _person(parts: tuple[Dataset, ...]) -> Person:
    header = parts[-1]
    return Person(
        sex=_text(header, "PatientSex"),
        age=_text(header, "PatientAge"),
        manufacturer=_text(header, "Manufacturer"),
        model=_text(header, "ManufacturerModelName"),
        tesla=_number(parts, "MagneticFieldStrength"),
    )


def _plane(parts: tuple[Dataset, ...]) -> tuple[Vector, Vector]:
    values = _numbers(parts, "ImageOrientationPatient", 6)
    if values is None:
        raise RejectedError(Reason.NO_POSITION, "no orientation")
    rows, columns = np.array(values[:3]), np.array(values[3:])
    lengths = np.linalg.norm(rows), np.linalg.norm(columns)
    if any(abs(length - 1) > _PARALLEL for length in lengths) or abs(rows @ columns) > _PARALLEL:
        raise RejectedError(Reason.BAD_POSITION, "directions are not orthonormal")
    return _vector(rows / lengths[0]), _vector(columns / lengths[1])


def _vector(values: Iterable[float]) -> Vector:
    x, y, z = (float(value) for value in values)
    return x, y, z


def _position(parts: tuple[Dataset, ...]) -> Vector:
    values = _numbers(parts, "ImagePositionPatient", 3)
    if values is None:
        raise RejectedError(Reason.NO_POSITION, "no position")
    if any(abs(value) > 10_000 for value in values):
        raise RejectedError(Reason.BAD_POSITION, "more than 10 m from the scanner")
    return _vector(values)


def _component(parts: tuple[Dataset, ...]) -> str:
    """Return M, P, R or I from ComplexImageComponent, else from the third or later word of ImageType."""
    letters = {"MAGNITUDE": "M", "PHASE": "P", "REAL": "R", "IMAGINARY": "I"}
    for part in parts:
        component = _text(part, "ComplexImageComponent").upper()
        if component in letters:
            return letters[component]
    words = _words(parts, "ImageType")
    letter = next((word for word in words[2:] if word in ("M", "P", "R", "I")), "")
    numbers = _private(parts, *_GE_COMPONENT)
    is_legal = bool(numbers) and numbers[0] in range(len(_GE_COMPONENTS))
    return letter or (_GE_COMPONENTS[int(numbers[0])] if is_legal else "")


def _velocity(parts: tuple[Dataset, ...]) -> float | None:
    """Return the largest encoded velocity, from the standard's elements or a maker's own."""
    velocities = [
        abs(value)
        for name in ("VelocityEncodingMinimumValue", "VelocityEncodingMaximumValue")
        if (value := _number(parts, name)) is not None
    ]
    for place in _PRIVATE_VELOCITY:
        velocities += [abs(value) for value in _private(parts, *place)]
    return max(velocities, default=None)


def _private(parts: tuple[Dataset, ...], group: int, creator: str, element: int) -> list[float]:
    """Return the numbers of a maker's own element; none where it is absent or holds no numbers."""
    for part in parts:
        if not any(tag >> 16 == group for tag in part.keys()):  # noqa: SIM118 - values would be parsed
            continue
        try:
            value = part.private_block(group, creator)[element].value
            numbers = [float(each) for each in (value if isinstance(value, list | MultiValue) else [value])]
        except (KeyError, TypeError, ValueError):
            continue
        return [number for number in numbers if abs(number) < _LARGEST]
    return []


def _inversion(parts: tuple[Dataset, ...]) -> float | None:
    """Return the first inversion time; multi-frame objects list several."""
    inversion_time = _number(parts, "InversionTime")
    if inversion_time is not None:
        return inversion_time
    listed = _value(parts, "InversionTimes")
    try:
        times = [float(each) for each in (listed if isinstance(listed, Iterable) else [listed])]
    except (TypeError, ValueError):
        return None
    return times[0] if times and math.isfinite(times[0]) else None


def _clock(parts: tuple[Dataset, ...]) -> float | None:
    """Return the acquisition time (else the content time) in seconds since midnight."""
    for name in ("FrameAcquisitionDateTime", "AcquisitionDateTime", "AcquisitionTime", "ContentTime"):
        for part in parts:
            text = _text(part, name)
            text = text[8:] if name.endswith("DateTime") else text
            match = re.match(r"(\d\d)(\d\d)(\d\d(?:\.\d+)?)", text)
            if match:
                return int(match[1]) * 3600.0 + int(match[2]) * 60.0 + float(match[3])
    return None


def _value(parts: tuple[Dataset, ...], name: str) -> Any:
    for part in parts:
        value = part.get(name)
        if value is not None and value != "":
            return value
    return None


def _number(parts: tuple[Dataset, ...], name: str, default: float | None = None) -> float | None:
    """Return a number; the default if the element is absent, None if its value is not a finite number."""
    value = _value(parts, name)
    if value is None:
        return default
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and abs(number) < _LARGEST else None


def _numbers(parts: tuple[Dataset, ...], name: str, count: int) -> list[float] | None:
    value = _value(parts, name)
    if value is None:
        return None
    try:
        numbers = [float(entry) for entry in value]
    except (TypeError, ValueError):
        return None
    return numbers if len(numbers) >= count and all(map(math.isfinite, numbers)) else None


def _whole_number(parts: tuple[Dataset, ...], name: str) -> int | None:
    number = _number(parts, name)
    return None if number is None or abs(number) > 1e9 else int(number)


def _int(dataset: Dataset, name: str, default: int) -> int:
    value = dataset.get(name)
    return default if value is None or value == "" else int(value)


def _text(dataset: Dataset, name: str) -> str:
    value = dataset.get(name)
    return "" if value is None else str(value).strip()


def _words(parts: tuple[Dataset, ...], name: str) -> tuple[str, ...]:
    value = _value(parts, name)
    if value is None:
        return ()
    entries = [value] if isinstance(value, str) else list(value)
    return tuple(str(entry).strip().upper() for entry in entries)
