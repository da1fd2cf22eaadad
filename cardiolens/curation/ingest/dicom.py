"""DICOM headers as one record per frame; only an allow-list of elements is read.

A multi-frame object stores common elements in SharedFunctionalGroupsSequence and the others in
PerFrameFunctionalGroupsSequence (PS3.3 C.7.6.16); here every frame record holds both.
"""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from pydicom.datadict import keyword_for_tag
from pydicom.dataset import Dataset
from pydicom.multival import MultiValue

from cardiolens.base.untrusted import dicom_file
from cardiolens.curation.ingest.frame_records import (
    Identity,
    Image,
    Person,
    Pulse,
    RejectedError,
    Vector,
    vector,
)
from cardiolens.curation.ingest.reasons import Reason

SMALLEST, LARGEST = 16, 4096  # pixels per side
LARGEST_NUMBER = 1e30  # of a header: unset elements of doubles hold 1.8e308, and NIfTI stores 32-bit floats
FINEST_MM = 0.01  # pixel spacing; finer values are errors and would round to 0 when written
_PARALLEL = 0.02  # tolerance of unit length and orthogonality of a plane's directions
_NOT_IMAGES = {  # by the start of their SOP class
    "1.2.840.10008.5.1.4.1.1.4.2": "spectroscopy",
    "1.2.840.10008.5.1.4.1.1.66": "raw data, a registration or a segmentation",
    "1.2.840.10008.5.1.4.1.1.7": "a picture of a screen",
}
_LEFT_IN_TYPE = "MOSAIC"  # Siemens XA30 takes tiles apart into frames and leaves the word (dcm2niix #553)
_PHILIPS = 0x2005, "Philips MR Imaging DD 001", 0x0D, 0x0E  # group, creator, scale intercept and slope
_PRIVATE_VELOCITY = (  # group, creator, element
    (0x0019, "GEMS_ACQU_01", 0xCC),
    (0x2001, "Philips Imaging DD 001", 0x1A),
)
_GE_COMPONENT = 0x0043, "GEMS_PARM_01", 0x2F
_COMPONENTS = {"MAGNITUDE": "M", "PHASE": "P", "REAL": "R", "IMAGINARY": "I"}  # GE counts them so, from 0
_CLOCKS = ("FrameAcquisitionDateTime", "AcquisitionDateTime", "AcquisitionTime", "ContentTime")


def read_images(place: Path) -> list[Image]:
    """Read the frame records of a file; RejectedError if it has no usable frame, or what pydicom raises."""
    dataset = read_dataset(place, pixels=False)
    _check_kind(dataset)
    _check_pixels(dataset)
    count = Header((dataset,)).whole_number("NumberOfFrames") or 0
    frames = dataset.get("PerFrameFunctionalGroupsSequence")
    if frames is None and count > 1:
        raise RejectedError(Reason.NO_POSITION, "many frames and no positions of single frames")
    if frames is not None and not 1 <= count == len(frames):
        raise RejectedError(Reason.BROKEN_FILE, "number of frames and frame records differ")
    shared = list(dataset.get("SharedFunctionalGroupsSequence") or [])[:1]
    common = [item for group in shared for item in _items(group)]
    groups = [[]] if frames is None else map(_items, frames)
    return [_image(place, at, Header((*items, *common, dataset))) for at, items in enumerate(groups)]


def read_dataset(place: Path, *, pixels: bool) -> Dataset:
    """Parse the DICOM file at a place; RejectedError if it is not DICOM, or what pydicom raises."""
    try:
        return dicom_file.read(place, pixels=pixels)
    except dicom_file.NotDicomError:
        raise RejectedError(Reason.NO_IMAGE, "not DICOM") from None
    except dicom_file.DeflatedError as error:
        raise RejectedError(Reason.PACKED, f"{error}; export it in another transfer syntax") from None


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
    header, colours = Header((dataset,)), str(dataset.get("PhotometricInterpretation", "MONOCHROME2"))
    if colours == "MONOCHROME1":
        raise RejectedError(Reason.NO_IMAGE, "high values are dark; export it as MONOCHROME2")
    if header.whole_number("SamplesPerPixel") not in (None, 1) or colours != "MONOCHROME2":
        raise RejectedError(Reason.NO_IMAGE, "in colour")
    sides = header.whole_number("Rows") or 0, header.whole_number("Columns") or 0
    if sides == (0, 0):
        raise RejectedError(Reason.NO_IMAGE, "no pixels")
    if not all(SMALLEST <= side <= LARGEST for side in sides):
        raise RejectedError(Reason.BAD_SHAPE, f"{sides[0]} x {sides[1]}")
    allocated, stored = header.whole_number("BitsAllocated") or 0, header.whole_number("BitsStored") or 0
    is_legal = allocated in (8, 16, 32) and 1 <= stored <= allocated
    is_legal &= header.whole_number("HighBit") in (None, stored - 1)
    if not is_legal or header.whole_number("PixelRepresentation") not in (None, 0, 1):
        raise RejectedError(Reason.BROKEN_FILE, "its bit depth")


def _items(group: Dataset) -> list[Dataset]:
    """Return the first item of each functional group."""
    return [element.value[0] for element in group if element.VR == "SQ" and element.value]


class Header:
    """The header of a frame: its own functional groups, those of all frames, and the file's elements.

    A sidecar of NIfTI, which has the names and units of DICOM, is a header of one part.
    """

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts, self.file = parts, parts[-1]

    def value(self, name: str) -> Any:
        """Return the first value that is not empty; None if no part has one."""
        values = (part.get(name) for part in self.parts)
        return next((value for value in values if value is not None and value != ""), None)

    def numbers(self, *names: str) -> list[float]:
        """Return the finite numbers of the first element that has one; none if an entry is no number."""
        return next(filter(None, (_finite(self.value(name)) for name in names)), [])

    def number(self, *names: str, default: float | None = None) -> float | None:
        """Return the number of the first element that holds one; the default if all are absent."""
        values = [value for name in names if (value := self.value(name)) is not None]
        numbers = [each[0] for each in map(_finite, values) if len(each) == 1]
        return numbers[0] if numbers else (None if values else default)

    def whole_number(self, *names: str) -> int | None:
        """Return a number without its fraction; None if it is absent or no number that counts anything."""
        number = self.number(*names)
        return None if number is None or abs(number) > 1e9 else int(number)

    def text(self, *names: str) -> str:
        """Return the first element of the file that is not blank, as text; else nothing."""
        texts = (str(self.file.get(name) or "").strip() for name in names)
        return next(filter(None, texts), "")

    def words(self, *names: str) -> tuple[str, ...]:
        """Return the words of coded elements, such as ImageType, in capitals."""
        values = [value for name in names if (value := self.value(name)) is not None]
        entries = [entry for value in values for entry in ([value] if isinstance(value, str) else value)]
        return tuple(str(entry).strip().upper() for entry in entries)

    def private(self, group: int, creator: str, element: int) -> list[float]:
        """Return the numbers of a maker's own element; none where it is absent or holds no numbers."""
        for part in self.parts:
            if not any(tag >> 16 == group for tag in part.keys()):  # noqa: SIM118 - values would be parsed
                continue
            try:
                return _finite(part.private_block(group, creator)[element].value)
            except KeyError:
                continue
        return []


def _finite(value: Any) -> list[float]:
    """Return the numbers of an element without those that were never set; none if an entry is no number."""
    try:
        numbers = [float(each) for each in (value if isinstance(value, list | MultiValue) else [value])]
    except (TypeError, ValueError):
        return []
    return [each for each in numbers if math.isfinite(each) and abs(each) < LARGEST_NUMBER]


def _image(place: Path, frame: int, header: Header) -> Image:
    position, rows, columns = _plane(header)
    spacing = header.numbers("PixelSpacing")
    if len(spacing) != 2 or not all(FINEST_MM < step < 100 for step in spacing):
        raise RejectedError(Reason.NO_SPACING)
    slope = header.number("RescaleSlope", default=1.0)
    intercept = header.number("RescaleIntercept", default=0.0)
    if slope is None or intercept is None or abs(slope) < 1 / LARGEST_NUMBER:
        raise RejectedError(Reason.BROKEN_FILE, "its rescale slope or intercept")
    types = header.words("ImageType", "FrameType")
    is_frame_of_several = "PerFrameFunctionalGroupsSequence" in header.file
    limits = ("VelocityEncodingMinimumValue", "VelocityEncodingMaximumValue")
    velocities = [value for name in limits for value in header.numbers(name)]
    velocities += [value for element in _PRIVATE_VELOCITY for value in header.private(*element)]
    tags = header.file.keys() if frame == 0 else ()  # iterating the dataset would parse every element
    return Image(
        place=place,
        frame=frame,
        identity=_identity(header, frame),
        person=person_of(header),
        pulse=pulse_of(header),
        rows=header.whole_number("Rows") or 0,
        columns=header.whole_number("Columns") or 0,
        spacing=(spacing[0], spacing[1]),
        position=position,
        row_direction=rows,
        column_direction=columns,
        scale=(slope, intercept),
        maker_scale=_maker_scale(header),
        series_number=Header((header.file,)).whole_number("SeriesNumber") or 0,
        acquisition=header.whole_number("AcquisitionNumber") or 0,
        instance_number=(header.whole_number("InstanceNumber") or 0) * 100_000 + frame,
        texts=(header.text("SeriesDescription"), header.text("ProtocolName")),
        image_type=tuple(word for word in types if not (is_frame_of_several and word == _LEFT_IN_TYPE)),
        component=_component_of(header, types),
        thickness=header.number("SliceThickness"),
        trigger=header.number("TriggerTime", "NominalCardiacTriggerDelayTime"),
        temporal=header.whole_number("TemporalPositionIdentifier", "TemporalPositionIndex") or None,
        clock=_clock(header),
        velocity=max(map(abs, velocities), default=None),
        phases_declared=header.whole_number("CardiacNumberOfImages"),
        temporals_declared=header.whole_number("NumberOfTemporalPositions"),
        images_declared=header.whole_number("ImagesInAcquisition"),
        beat=header.number("NominalInterval", "RRIntervalTimeNominal"),
        apart=header.number("SpacingBetweenSlices"),
        tags=tuple(
            sorted({"private" if tag.is_private else keyword_for_tag(tag) or "unknown" for tag in tags})
        ),
    )


def person_of(header: Header) -> Person:
    """Return the facts about patient and scanner of a header."""
    return Person(
        sex=header.text("PatientSex"),
        age=header.text("PatientAge"),
        manufacturer=header.text("Manufacturer"),
        model=header.text("ManufacturerModelName"),
        tesla=header.number("MagneticFieldStrength"),
    )


def pulse_of(header: Header) -> Pulse:
    """Return the pulse sequence of a header."""
    inversions = header.numbers("InversionTime", "InversionTimes")
    return Pulse(
        name=header.text("SequenceName", "PulseSequenceName").lower(),
        scanning=header.words("ScanningSequence", "EchoPulseSequence"),
        variant=header.words("SequenceVariant"),
        options=header.words("ScanOptions"),
        inversion=inversions[0] if inversions else None,
        echo=header.number("EchoTime", "EffectiveEchoTime") or None,
        flip=header.number("FlipAngle"),
    )


def _identity(header: Header, frame: int) -> Identity:
    instance = header.text("SOPInstanceUID")
    return Identity(
        patient=header.text("PatientID", "PatientName"),
        study=header.text("StudyInstanceUID"),
        series=header.text("SeriesInstanceUID"),
        instance=f"{instance}#{frame}" if instance else "",
        accession=header.text("AccessionNumber"),
        date=header.text("StudyDate"),
        birth_date=header.text("PatientBirthDate"),
        device=header.text("DeviceSerialNumber"),
    )


def _plane(header: Header) -> tuple[Vector, Vector, Vector]:
    """Return position, and directions along rows and columns."""
    position, values = header.numbers("ImagePositionPatient"), header.numbers("ImageOrientationPatient")
    if len(position) != 3 or len(values) != 6:
        raise RejectedError(Reason.NO_POSITION, "no position or orientation")
    if max(map(abs, position)) > 10_000:
        raise RejectedError(Reason.NO_POSITION, "more than 10 m from the scanner")
    rows, columns = np.array(values[:3]), np.array(values[3:])
    lengths = np.linalg.norm(rows), np.linalg.norm(columns)
    if any(abs(length - 1) > _PARALLEL for length in lengths) or abs(rows @ columns) > _PARALLEL:
        raise RejectedError(Reason.NO_POSITION, "directions are not orthonormal")
    return vector(position), vector(rows / lengths[0]), vector(columns / lengths[1])


def _clock(header: Header) -> float | None:
    """Return the acquisition time (else the content time) in seconds since midnight."""
    for name in _CLOCKS:
        text = str(header.value(name) or "").strip()
        match = re.match(r"(\d\d)(\d\d)(\d\d(?:\.\d+)?)", text[8:] if name.endswith("DateTime") else text)
        if match:
            return int(match[1]) * 3600.0 + int(match[2]) * 60.0 + float(match[3])
    return None


def _maker_scale(header: Header) -> tuple[float, float] | None:
    """Return slope and intercept that undo Philips' private scaling; None for other vendors.

    A stored value is intensity * scale slope + scale intercept. The rescale slope is chosen per series for
    display on the console and is not comparable between series.
    """
    group, creator, *elements = _PHILIPS
    if not header.text("Manufacturer").lower().startswith("philips"):
        return None
    values = [header.private(group, creator, element) for element in elements]
    if not all(values) or values[1][0] <= 0:
        return None
    return 1 / values[1][0], 0.0 - values[0][0] / values[1][0]


def _component_of(header: Header, types: tuple[str, ...]) -> str:
    """Return M, P, R or I from ComplexImageComponent, else from a word of the type or from GE's number."""
    declared = str(header.value("ComplexImageComponent") or "").strip().upper()
    letter = next((word for word in types[2:] if word in _COMPONENTS.values()), "")
    numbers = header.private(*_GE_COMPONENT)
    by_number = [*_COMPONENTS.values()][int(numbers[0])] if numbers and numbers[0] in range(4) else ""
    return _COMPONENTS.get(declared) or letter or by_number
