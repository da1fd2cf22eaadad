"""Attributes that classic and multi-frame images share: patient, study, series, equipment, pixels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset

from tests.support.dicom.exam import Exam
from tests.support.dicom.series import Image, Series, clock

THICKNESS_MM = 8.0
CLASSIC, ENHANCED = "1.2.840.10008.5.1.4.1.1.4", "1.2.840.10008.5.1.4.1.1.4.1"
_COMPONENTS = {"MAGNITUDE": 0, "PHASE": 1, "REAL": 2}


def number(value: float, decimals: int) -> str:
    """Format a decimal string of at most 16 characters, without a negative zero."""
    text = f"{value:.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text[:16]


def general(exam: Exam, series: Series, sop_class: str) -> Dataset:
    """Return a dataset with the attributes that all images of a series share."""
    dataset = Dataset()
    dataset.SpecificCharacterSet = "ISO_IR 192" if sop_class == ENHANCED else "ISO_IR 100"
    dataset.SOPClassUID = sop_class
    _patient(exam, dataset)
    _study(exam, dataset)
    _series(exam, series, dataset)
    return dataset


def add_pixels(exam: Exam, dataset: Dataset, frames: NDArray[np.int16]) -> None:
    """Add stored matrices (frame, row, column) to a dataset."""
    of = exam.dialect
    dataset.SamplesPerPixel = 1
    dataset.PhotometricInterpretation = "MONOCHROME2"
    dataset.Rows, dataset.Columns = frames.shape[1:]
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = 16, of.bits_stored, of.bits_stored - 1
    dataset.PixelRepresentation = int(of.signed)
    dataset.add_new(0x7FE00010, "OW", frames.astype("<i2" if of.signed else "<u2").tobytes())


def slope(exam: Exam, series: Series) -> tuple[float, float]:
    """Return rescale slope and intercept of a series; stored values stay equal to the NIfTI cohort's."""
    of = exam.dialect
    steep = exam.drawn("slope", series.number).one_of(of.slopes)
    sources = [image.stack.source for image in series.images[:1]]
    zero = sources[0].add if sources[0] is not None and series.kind == "psir" else 0
    return steep, -steep * zero


def window(frames: NDArray[np.int16]) -> tuple[int, int]:
    """Return a window centre and width like those that scanners guess."""
    low, high = int(frames.min()), int(np.sort(frames, axis=None)[int(0.98 * (frames.size - 1))])
    return (low + high) // 2, max(high - low, 1)


def add_private(exam: Exam, dataset: Dataset, words: dict[str, Any]) -> None:
    """Add the vendor's private elements; `words` and the identity fill their templates."""
    person = vars(exam.identity) | {"private_uid": exam.uid("private"), "orientation": "Cor>Sag(-33.1)>Tra"}
    blocks: dict[tuple[int, str], int] = {}
    for private in exam.dialect.private:
        key = private.group, private.creator
        if key not in blocks:
            blocks[key] = 0x10 + sum(group == private.group for group, _ in blocks)
            dataset.add_new((private.group, blocks[key]), "LO", private.creator)
        value = _private_value(private.vr, private.value.format(**person, **words))
        dataset.add_new((private.group, (blocks[key] << 8) + private.element), private.vr, value)


def _private_value(vr: str, text: str) -> str | bytes | int | float:
    match vr:
        case "OB":
            raw = text.encode()
            return raw + b"\0" * (len(raw) % 2)
        case "SS" | "SL":
            return int(text)
        case "FL":
            return float(text)
    return text


def private_words(exam: Exam, series: Series, image: Image) -> dict[str, Any]:
    """Return the words of one image for templates of private elements."""
    kind = exam.dialect.acquisitions[image.stack.kind]
    return {
        "sequence_name": kind.sequence_name,
        "component_number": _COMPONENTS[kind.component],
        "phase_number": image.phase + 1,
        "slice_number": image.slice + 1,
        "n_phases": image.stack.phases,
        "n_slices": len({(one.stack.name, one.slice) for one in series.images}),
        "dynamic_s": round(image.acquired_s - series.images[0].acquired_s, 3),
    }


def _patient(exam: Exam, dataset: Dataset) -> None:
    who = exam.identity
    dataset.PatientName, dataset.PatientID = who.name, who.patient_id
    dataset.PatientBirthDate, dataset.PatientSex = who.birth_date, who.sex
    dataset.OtherPatientIDs = who.other_id
    dataset.PatientAge = f"{int(who.study_date[:4]) - int(who.birth_date[:4]):03d}Y"
    dataset.PatientWeight, dataset.PatientSize = "75", "1.71"
    dataset.PatientAddress, dataset.PatientTelephoneNumbers = who.address, who.phone
    dataset.PatientComments = who.comment


def _study(exam: Exam, dataset: Dataset) -> None:
    who = exam.identity
    dataset.StudyInstanceUID = exam.uid("study")
    dataset.StudyDate, dataset.StudyTime = who.study_date, who.study_time
    dataset.AccessionNumber, dataset.StudyID = who.accession, who.accession[-6:]
    dataset.ReferringPhysicianName = who.referrer
    dataset.PerformingPhysicianName, dataset.OperatorsName = who.performer, who.operator
    dataset.StudyDescription = "Cardiac MR^Standard"
    dataset.InstitutionName, dataset.InstitutionAddress = who.institution, who.institution_address
    dataset.InstitutionalDepartmentName = who.department
    request = Dataset()
    request.RequestedProcedureID = who.accession
    request.RequestedProcedureDescription = f"MR Herz, {who.referrer.replace('^', ' ')}"
    dataset.RequestAttributesSequence = [request]


def _series(exam: Exam, series: Series, dataset: Dataset) -> None:
    of, who = exam.dialect, exam.identity
    dataset.Modality, dataset.Manufacturer = "MR", of.manufacturer
    dataset.ManufacturerModelName = exam.drawn("model").one_of(of.models)
    dataset.SoftwareVersions = of.software.split("\\")
    dataset.DeviceSerialNumber, dataset.StationName = who.device_serial, who.station
    dataset.MagneticFieldStrength = number(of.field_tesla, 2)
    dataset.SeriesInstanceUID = exam.uid("series", series.number)
    dataset.SeriesNumber = series.number
    if series.name.description is not None:
        dataset.SeriesDescription = series.name.description
    dataset.ProtocolName = series.name.protocol
    dataset.SeriesDate = who.study_date
    dataset.SeriesTime = clock(who.study_time, series.images[0].acquired_s)
    dataset.BodyPartExamined, dataset.PatientPosition = "HEART", "HFS"
    dataset.FrameOfReferenceUID, dataset.PositionReferenceIndicator = exam.uid("frame"), ""
    dataset.ImageComments = who.comment
