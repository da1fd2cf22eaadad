"""De-identification: what leaves the hospital's records, and under which names.

Ids are keyed hashes (HMAC-SHA256), so that the same patient has the same id in every export read with the
same key, and nobody without the key can try names. This follows DICOM PS3.15 annex E in kind, not by claim:
its basic profile lists what must go; here only the elements of `PASSES` go into what is written. Dates,
times, UIDs, private elements, overlays, names of files and all free text stay behind.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cardiolens.base.errors import InputError
from cardiolens.curation.ingest.image import Identity, Image, Person

KEY_BYTES = 32
Sex = Literal["female", "male", "other"]

# Elements of which something is written, and what.
PASSES = {
    "PatientSex": "female, male or other",
    "PatientAge": "a band of ten years, 90+ above",
    "Manufacturer": "one of seven names, else nothing",
    "MagneticFieldStrength": "tesla, rounded to a tenth",
    "Rows": "shape",
    "Columns": "shape",
    "PixelSpacing": "spacing_mm and the affine",
    "SliceThickness": "spacing_mm of a single slice",
    "ImagePositionPatient": "the affine",
    "ImageOrientationPatient": "the affine",
    "RescaleSlope": "the slope of the NIfTI header",
    "RescaleIntercept": "the intercept of the NIfTI header",
    "SeriesNumber": "proposals.json, so that a person finds the series",
    "PixelData": "voxels: the stored bits alone",
}
# Elements that are only looked at: they decide groups, classes and order, and are not written.
LOOKED_AT = (
    *("SOPClassUID", "SOPInstanceUID", "StudyInstanceUID", "SeriesInstanceUID", "PatientID", "PatientName"),
    *(
        "Modality",
        "ImageType",
        "FrameType",
        "SeriesDescription",
        "ProtocolName",
        "SequenceName",
        "PulseSequenceName",
    ),
    *("ScanningSequence", "EchoPulseSequence", "SequenceVariant", "ScanOptions", "ComplexImageComponent"),
    *(
        "EchoTime",
        "EffectiveEchoTime",
        "InversionTime",
        "InversionTimes",
        "RepetitionTime",
        "FlipAngle",
        "CardiacNumberOfImages",
        "TriggerTime",
    ),
    *(
        "NominalCardiacTriggerDelayTime",
        "TemporalPositionIdentifier",
        "TemporalPositionIndex",
        "AcquisitionNumber",
    ),
    *("InstanceNumber", "AcquisitionTime", "ContentTime", "FrameAcquisitionDateTime", "AcquisitionDateTime"),
    *(
        "ContrastBolusAgent",
        "BurnedInAnnotation",
        "SamplesPerPixel",
        "PhotometricInterpretation",
        "NumberOfFrames",
    ),
    *("BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "AccessionNumber", "StudyDate"),
)
_VENDORS = {
    "siemens": "Siemens",
    "ge ": "GE",
    "ge medical": "GE",
    "gems": "GE",
    "philips": "Philips",
    "canon": "Canon",
    "toshiba": "Canon",
    "united imaging": "United Imaging",
    "uih": "United Imaging",
    "hitachi": "Hitachi",
    "fuji": "Fujifilm",
}
_OLDEST = 90


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """Ids under one key."""

    key: bytes

    def patient(self, identity: Identity) -> str:
        """Id of a patient; without one in the header, of the study."""
        return "P" + self._hash("patient", identity.patient or f"study {identity.study}")

    def study(self, identity: Identity) -> str:
        """Id of a study of a patient."""
        return "S" + self._hash("study", identity.patient, identity.study)

    def stack(self, identity: Identity, parts: Iterable[str]) -> str:
        """Id of a stack of a study by what every export of it has."""
        return "Q" + self._hash("stack", identity.patient, identity.study, *parts)

    def file(self, name: str) -> str:
        """Id of a file by its path below the source."""
        return "F" + self._hash("file", name)

    def digest(self, lines: Iterable[str]) -> str:
        """Keyed digest of many lines, by which an unchanged input is recognised."""
        return hmac.new(
            self.key, "\n".join(lines).encode("utf-8", "surrogateescape"), hashlib.sha256
        ).hexdigest()

    def _hash(self, *parts: str) -> str:
        text = "\0".join(parts).encode("utf-8", "surrogateescape")
        return hmac.new(self.key, text, hashlib.sha256).hexdigest()[:16]


def read_key(path: Path) -> bytes:
    """The key in a file; a new one is written, readable by its owner alone, where there is no file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _existing(path)
    except OSError as error:
        raise InputError(
            f"key={path}: cannot be written ({error.strerror}); name a file in a folder of yours"
        ) from None
    key = secrets.token_bytes(KEY_BYTES)
    with os.fdopen(descriptor, "w") as handle:
        handle.write(key.hex() + "\n")
    return key


def _existing(path: Path) -> bytes:
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        key = b""
    if len(key) < KEY_BYTES:
        raise InputError(
            f"key={path}: holds no key; expected {2 * KEY_BYTES} or more hex digits, as this verb writes; "
            "name another file, or remove it for a new key and new ids"
        )
    return key


def sex(person: Person) -> Sex | None:
    """Sex as study.json has it."""
    sexes: dict[str, Sex] = {"F": "female", "M": "male", "O": "other"}
    return sexes.get(person.sex.upper()[:1])


def age_band(person: Person) -> str | None:
    """A band of ten years from an age such as 054Y; 90 and above are one band."""
    match = re.fullmatch(r"(\d{1,3})([YMWD])", person.age.upper())
    if match is None:
        return None
    years = int(match[1]) if match[2] == "Y" else 0
    if years >= _OLDEST:
        return f"{_OLDEST}+"
    return f"{years // 10 * 10}-{years // 10 * 10 + 9}"


def vendor(person: Person) -> str | None:
    """The maker of the scanner, of a closed list."""
    text = f"{person.manufacturer.lower()} "
    return next((name for start, name in _VENDORS.items() if text.startswith(start)), None)


def tesla(person: Person) -> float | None:
    """Field strength to a tenth; headers in gauss are turned."""
    field = person.tesla
    if field is None or field <= 0:
        return None
    field = round(field / 10_000 if field > 1000 else field, 1)
    return field if 0 < field <= 20 else None


def removed(images: Iterable[Image]) -> dict[str, int]:
    """Number of files that held each element of which nothing is written; private ones are one entry."""
    counts = Counter(tag for image in images if image.frame == 0 for tag in image.tags)
    return {tag: counts[tag] for tag in sorted(counts) if tag not in PASSES}
