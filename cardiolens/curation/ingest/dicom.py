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
from pathlib import Path
from typing import Any

import numpy as np
from pydicom.datadict import keyword_for_tag
from pydicom.dataset import Dataset
from pydicom.multival import MultiValue

from cardiolens.base.untrusted import dicom_file
from cardiolens.base.untrusted.bounded_files import read_start
from cardiolens.base.untrusted.gzip_stream import TooLargeError
from cardiolens.curation.ingest.frame_records import Identity, Image, Person, RejectedError, Vector, vector
from cardiolens.curation.ingest.reasons import Reason

SMALLEST, LARGEST = 16, 4096  # pixels per side
LARGEST_SCALE = 1e30  # of a slope or intercept: NIfTI stores 32-bit floats
FINEST_MM = 0.01  # pixel spacing; finer values are errors and would round to 0 when written
_BITS = (8, 16, 32)
_PARALLEL = 0.02  # tolerance of unit length and orthogonality of a plane's directions
_NOT_IMAGES = {  # by the start of their SOP class
    "1.2.840.10008.5.1.4.1.1.4.2": "spectroscopy",
    "1.2.840.10008.5.1.4.1.1.66": "raw data, a registration or a segmentation",
    "1.2.840.10008.5.1.4.1.1.7": "a picture of a screen",
}
_PACKED = (
    b"\x1f\x8b",
    b"\x1f\x9d",
    b"BZh",
    b"\xfd7zXZ\0",
    b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf",
    b"Rar!",
    b"PK\3\4",
)
_LEFT_IN_TYPE = "MOSAIC"  # Siemens XA30 takes tiles apart into frames and leaves the word (dcm2niix #553)


def read_images(place: Path) -> list[Image]:
    """Read the frame records of a file; RejectedError if the file has no usable frame."""
    dataset = read_dataset(place, pixels=False)
    with _broken(Reason.BROKEN_FILE):
        _check_kind(dataset)
        _check_pixels(dataset)
        if "PerFrameFunctionalGroupsSequence" in dataset:
            return list(_multi_frame(place, dataset))
        if integer_of(dataset, "NumberOfFrames", 1) > 1:
            raise RejectedError(Reason.NO_POSITION, "many frames and no positions of single frames")
        return [_image(place, 0, (dataset,))]


def read_dataset(place: Path, *, pixels: bool) -> Dataset:
    """Parse the DICOM file at a place; RejectedError if it is damaged or not DICOM."""
    with _broken(Reason.BROKEN_FILE):
        try:
            return dicom_file.read(place, pixels=pixels)
        except dicom_file.NotDicomError:
            if read_start(place, 8).startswith(_PACKED):
                raise RejectedError(Reason.PACKED) from None
            raise RejectedError(Reason.NO_IMAGE, "not DICOM") from None
        except TooLargeError:
            raise RejectedError(Reason.BROKEN_FILE, "it unpacks to too much") from None


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
        raise RejectedError(Reason.BROKEN_FILE if error.errno is None else Reason.UNREADABLE) from None
    except Exception as error:  # noqa: BLE001 - pydicom raises a dozen kinds for damaged files
        raise RejectedError(reason, type(error).__name__) from None


def _check_kind(dataset: Dataset) -> None:
    kind = str(dataset.get("SOPClassUID", "") or dataset.file_meta.get("MediaStorageSOPClassUID", ""))
    modality = str(dataset.get("Modality", "")).upper()
    if not kind and not modality:
        raise RejectedError(Reason.BROKEN_FILE, "neither SOP class nor modality")
    if what := next((name for start, name in _NOT_IMAGES.items() if kind.startswith(start)), ""):
        raise RejectedError(Reason.NO_IMAGE, what)
    if modality != "MR":
        raise RejectedError(Reason.NO_IMAGE, "its modality is not MR")
    if not (str(dataset.get("StudyInstanceUID", "")) and str(dataset.get("SeriesInstanceUID", ""))):
        raise RejectedError(Reason.PATIENT_UNCLEAR, "no study or no series UID")
    if str(dataset.get("BurnedInAnnotation", "")).upper() == "YES":
        raise RejectedError(Reason.BURNED_IN_TEXT)


def _check_pixels(dataset: Dataset) -> None:
    if integer_of(dataset, "SamplesPerPixel", 1) != 1 or str(
        dataset.get("PhotometricInterpretation", "MONOCHROME2")
    ) not in ("MONOCHROME1", "MONOCHROME2"):
        raise RejectedError(Reason.NO_IMAGE, "in colour")
    sides = integer_of(dataset, "Rows", 0), integer_of(dataset, "Columns", 0)
    if sides == (0, 0):
        raise RejectedError(Reason.NO_IMAGE, "no pixels")
    if not all(SMALLEST <= side <= LARGEST for side in sides):
        raise RejectedError(Reason.BAD_SHAPE, f"{sides[0]} x {sides[1]}")
    allocated, stored = integer_of(dataset, "BitsAllocated", 0), integer_of(dataset, "BitsStored", 0)
    high = integer_of(dataset, "HighBit", stored - 1)
    if allocated not in _BITS or not 1 <= stored <= allocated or high != stored - 1:
        raise RejectedError(Reason.BROKEN_FILE, "its bit depth")
    if integer_of(dataset, "PixelRepresentation", 0) not in (0, 1):
        raise RejectedError(Reason.BROKEN_FILE, "its bit depth")


def _multi_frame(place: Path, dataset: Dataset) -> Iterator[Image]:
    count = integer_of(dataset, "NumberOfFrames", 0)
    frames = dataset.PerFrameFunctionalGroupsSequence
    if count < 1 or len(frames) != count:
        raise RejectedError(Reason.BROKEN_FILE, "number of frames and frame records differ")
    shared = list(dataset.get("SharedFunctionalGroupsSequence") or [])[:1]
    common = [item for group in shared for item in _items(group)]
    for number, frame in enumerate(frames):
        image = _image(place, number, (*_items(frame), *common, dataset))
        types = tuple(word for word in image.image_type if word != _LEFT_IN_TYPE)
        yield replace(image, image_type=types)


def _items(group: Dataset) -> list[Dataset]:
    """Return the first item of each functional group."""
    return [element.value[0] for element in group if element.VR == "SQ" and element.value]


def _image(place: Path, frame: int, parts: tuple[Dataset, ...]) -> Image:
    header = parts[-1]
    rows, columns = _plane(parts)
    spacing = numbers_of(parts, "PixelSpacing", 2)
    if spacing is None or not all(FINEST_MM < step < 100 for step in spacing):
        raise RejectedError(Reason.NO_SPACING)
    slope = number_of(parts, "RescaleSlope", 1.0)
    intercept = number_of(parts, "RescaleIntercept", 0.0)
    if slope is None or intercept is None or not 1 / LARGEST_SCALE < abs(slope) < LARGEST_SCALE:
        raise RejectedError(Reason.BROKEN_FILE, "its rescale slope or intercept")
    if abs(intercept) > LARGEST_SCALE:
        raise RejectedError(Reason.BROKEN_FILE, "its rescale slope or intercept")
    trigger = number_of(parts, "TriggerTime")
    if trigger is None:
        trigger = number_of(parts, "NominalCardiacTriggerDelayTime")
    number = whole_number_of(parts, "InstanceNumber")
    tags = list(header.keys())  # iterating the dataset itself would parse every element
    return Image(
        place=place,
        frame=frame,
        identity=_identity(header, frame),
        person=_person(parts),
        rows=integer_of(header, "Rows", 0),
        columns=integer_of(header, "Columns", 0),
        spacing=(spacing[0], spacing[1]),
        position=_position(parts),
        row_direction=rows,
        column_direction=columns,
        slope=slope,
        intercept=intercept,
        maker_scale=_maker_scale(parts),
        inverted=inverted_about(header),
        series_number=whole_number_of((header,), "SeriesNumber") or 0,
        acquisition=whole_number_of(parts, "AcquisitionNumber") or 0,
        instance_number=(number or 0) * 100_000 + frame,
        description=text_of(header, "SeriesDescription"),
        protocol=text_of(header, "ProtocolName"),
        sequence_name=text_of(header, "SequenceName") or text_of(header, "PulseSequenceName"),
        image_type=coded_words(parts, "ImageType") + coded_words(parts, "FrameType"),
        scanning=coded_words(parts, "ScanningSequence") + coded_words(parts, "EchoPulseSequence"),
        variant=coded_words(parts, "SequenceVariant"),
        options=coded_words(parts, "ScanOptions"),
        component=_component_of(parts),
        thickness=number_of(parts, "SliceThickness"),
        trigger=trigger,
        temporal=whole_number_of(parts, "TemporalPositionIdentifier")
        or whole_number_of(parts, "TemporalPositionIndex"),
        clock=_clock(parts),
        inversion=_inversion(parts),
        echo=number_of(parts, "EchoTime") or number_of(parts, "EffectiveEchoTime"),
        flip=number_of(parts, "FlipAngle"),
        velocity=_velocity_of(parts),
        phases_declared=whole_number_of(parts, "CardiacNumberOfImages"),
        temporals_declared=whole_number_of(parts, "NumberOfTemporalPositions"),
        images_declared=whole_number_of(parts, "ImagesInAcquisition"),
        beat=number_of(parts, "NominalInterval") or number_of(parts, "RRIntervalTimeNominal"),
        apart=number_of(parts, "SpacingBetweenSlices"),
        location=_location(parts),
        tags=tuple(sorted({_keyword(tag) for tag in tags})) if frame == 0 else (),
    )


def inverted_about(dataset: Dataset) -> int | None:
    """Return the lowest plus the highest value that can be stored, if high values are dark; else None."""
    if str(dataset.get("PhotometricInterpretation", "")) != "MONOCHROME1":
        return None
    signed = integer_of(dataset, "PixelRepresentation", 0) == 1
    return -1 if signed else (1 << integer_of(dataset, "BitsStored", 0)) - 1


def _keyword(tag: Any) -> str:
    return "private" if tag.is_private else keyword_for_tag(tag) or "unknown"


def _identity(header: Dataset, frame: int) -> Identity:
    instance = text_of(header, "SOPInstanceUID")
    return Identity(
        patient=text_of(header, "PatientID") or text_of(header, "PatientName"),
        study=text_of(header, "StudyInstanceUID"),
        series=text_of(header, "SeriesInstanceUID"),
        instance=f"{instance}#{frame}" if instance else "",
        accession=text_of(header, "AccessionNumber"),
        date=text_of(header, "StudyDate"),
        birth_date=text_of(header, "PatientBirthDate"),
        device=text_of(header, "DeviceSerialNumber"),
        height_m=number_of((header,), "PatientSize"),
        weight_kg=number_of((header,), "PatientWeight"),
    )


def _person(parts: tuple[Dataset, ...]) -> Person:
    header = parts[-1]
    return Person(
        sex=text_of(header, "PatientSex"),
        age=text_of(header, "PatientAge"),
        manufacturer=text_of(header, "Manufacturer"),
        model=text_of(header, "ManufacturerModelName"),
        tesla=number_of(parts, "MagneticFieldStrength"),
    )


def _plane(parts: tuple[Dataset, ...]) -> tuple[Vector, Vector]:
    values = numbers_of(parts, "ImageOrientationPatient", 6)
    if values is None:
        raise RejectedError(Reason.NO_POSITION, "no orientation")
    rows, columns = np.array(values[:3]), np.array(values[3:])
    lengths = np.linalg.norm(rows), np.linalg.norm(columns)
    if any(abs(length - 1) > _PARALLEL for length in lengths) or abs(rows @ columns) > _PARALLEL:
        raise RejectedError(Reason.NO_POSITION, "directions are not orthonormal")
    return vector(rows / lengths[0]), vector(columns / lengths[1])


def _position(parts: tuple[Dataset, ...]) -> Vector:
    values = numbers_of(parts, "ImagePositionPatient", 3)
    if values is None:
        raise RejectedError(Reason.NO_POSITION, "no position")
    if any(abs(value) > 10_000 for value in values):
        raise RejectedError(Reason.NO_POSITION, "more than 10 m from the scanner")
    return vector(values)


def _location(parts: tuple[Dataset, ...]) -> float | None:
    """Return how far along the normal a slice lies, by what is declared beside its position."""
    location = number_of(parts, "SliceLocation")
    rank = number_of(parts, "InStackPositionNumber")
    apart = number_of(parts, "SpacingBetweenSlices") or number_of(parts, "SliceThickness")
    return rank * apart if location is None and rank is not None and apart is not None else location


def _inversion(parts: tuple[Dataset, ...]) -> float | None:
    """Return the first inversion time; multi-frame objects list several."""
    inversion_time = number_of(parts, "InversionTime")
    if inversion_time is not None:
        return inversion_time
    listed = value_of(parts, "InversionTimes")
    try:
        times = [float(each) for each in (listed if isinstance(listed, Iterable) else [listed])]
    except (TypeError, ValueError):
        return None
    return times[0] if times and math.isfinite(times[0]) else None


def _clock(parts: tuple[Dataset, ...]) -> float | None:
    """Return the acquisition time (else the content time) in seconds since midnight."""
    for name in ("FrameAcquisitionDateTime", "AcquisitionDateTime", "AcquisitionTime", "ContentTime"):
        for part in parts:
            text = text_of(part, name)
            text = text[8:] if name.endswith("DateTime") else text
            match = re.match(r"(\d\d)(\d\d)(\d\d(?:\.\d+)?)", text)
            if match:
                return int(match[1]) * 3600.0 + int(match[2]) * 60.0 + float(match[3])
    return None


LARGEST_NUMBER = 1e30  # of any number of a header: unset elements of doubles hold values like 1.8e308


def value_of(parts: tuple[Dataset, ...], name: str) -> Any:
    """Return the first value that is not empty; None if no part has one."""
    for part in parts:
        value = part.get(name)
        if value is not None and value != "":
            return value
    return None


def number_of(parts: tuple[Dataset, ...], name: str, default: float | None = None) -> float | None:
    """Return a number; the default if the element is absent, None if its value is not a finite number."""
    value = value_of(parts, name)
    if value is None:
        return default
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and abs(number) < LARGEST_NUMBER else None


def numbers_of(parts: tuple[Dataset, ...], name: str, count: int) -> list[float] | None:
    """Return at least `count` finite numbers; None if the element holds none, fewer or others."""
    value = value_of(parts, name)
    if value is None:
        return None
    try:
        numbers = [float(entry) for entry in value]
    except (TypeError, ValueError):
        return None
    return numbers if len(numbers) >= count and all(map(math.isfinite, numbers)) else None


def whole_number_of(parts: tuple[Dataset, ...], name: str) -> int | None:
    """Return a number without its fraction; None if it is absent or no number that counts anything."""
    number = number_of(parts, name)
    return None if number is None or abs(number) > 1e9 else int(number)


def integer_of(dataset: Dataset, name: str, default: int) -> int:
    """Return an integer; the default if the element is absent or empty."""
    value = dataset.get(name)
    return default if value is None or value == "" else int(value)


def text_of(dataset: Dataset, name: str) -> str:
    """Return an element as text without blanks around it; empty if it is absent."""
    value = dataset.get(name)
    return "" if value is None else str(value).strip()


def coded_words(parts: tuple[Dataset, ...], name: str) -> tuple[str, ...]:
    """Return the words of a coded element, such as ImageType, in capitals."""
    value = value_of(parts, name)
    if value is None:
        return ()
    entries = [value] if isinstance(value, str) else list(value)
    return tuple(str(entry).strip().upper() for entry in entries)


_PHILIPS = 0x2005, "Philips MR Imaging DD 001", 0x0D, 0x0E  # group, creator, scale intercept and slope
_PRIVATE_VELOCITY = (  # group, creator, element
    (0x0019, "GEMS_ACQU_01", 0xCC),
    (0x2001, "Philips Imaging DD 001", 0x1A),
)
_GE_COMPONENT = 0x0043, "GEMS_PARM_01", 0x2F
_GE_COMPONENTS = "MPRI"  # by its values 0 to 3


def _maker_scale(parts: tuple[Dataset, ...]) -> tuple[float, float] | None:
    """Return slope and intercept that undo Philips' private scaling; None for other vendors.

    A stored value is intensity * scale slope + scale intercept. The rescale slope is chosen per series for
    display on the console and is not comparable between series.
    """
    group, creator, *elements = _PHILIPS
    if not text_of(parts[-1], "Manufacturer").lower().startswith("philips"):
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


def _component_of(parts: tuple[Dataset, ...]) -> str:
    """Return M, P, R or I from ComplexImageComponent, else from the third or later word of ImageType."""
    letters = {"MAGNITUDE": "M", "PHASE": "P", "REAL": "R", "IMAGINARY": "I"}
    for part in parts:
        component = text_of(part, "ComplexImageComponent").upper()
        if component in letters:
            return letters[component]
    words = coded_words(parts, "ImageType")
    letter = next((word for word in words[2:] if word in ("M", "P", "R", "I")), "")
    numbers = _private(parts, *_GE_COMPONENT)
    is_legal = bool(numbers) and numbers[0] in range(len(_GE_COMPONENTS))
    return letter or (_GE_COMPONENTS[int(numbers[0])] if is_legal else "")


def _velocity_of(parts: tuple[Dataset, ...]) -> float | None:
    """Return the largest encoded velocity, from the standard's elements or a maker's own."""
    velocities = [
        abs(value)
        for name in ("VelocityEncodingMinimumValue", "VelocityEncodingMaximumValue")
        if (value := number_of(parts, name)) is not None
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
        return [number for number in numbers if abs(number) < LARGEST_NUMBER]
    return []
