"""De-identification: which header elements are written, and under which ids.

Ids are keyed hashes (HMAC-SHA256): a patient has the same id in every export that is read with the same
key, and without the key nobody can test names. Others may not read the key: with it, ids lead back to
patients with a guessable number. The approach resembles DICOM PS3.15 annex E but claims no conformance: the
basic profile lists what to remove; here only the elements of `PASSES` are written. Dates, times, UIDs,
private elements, overlays, file names and all free text are dropped.
"""

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from cardiolens.curation.ingest.frame_records import Identity, Image, Person

Sex = Literal["female", "male", "other"]

# Elements that reach the output (docs/guides/import.md: in which form); others are read to decide, and never
# written.
PASSES = frozenset(
    (
        *("PatientSex", "PatientAge", "Manufacturer", "MagneticFieldStrength", "Rows", "Columns"),
        *("PixelSpacing", "SliceThickness", "ImagePositionPatient", "ImageOrientationPatient"),
        *("RescaleSlope", "RescaleIntercept", "SeriesNumber", "PixelData"),
    )
)
_VENDORS = {"siemens": "Siemens", "ge ": "GE", "gems": "GE", "philips": "Philips", "canon": "Canon"}
_VENDORS |= {"toshiba": "Canon", "united imaging": "United Imaging", "uih": "United Imaging"}
_VENDORS |= {"hitachi": "Hitachi", "fuji": "Fujifilm"}
_OLDEST = 90


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """Keyed hashes as ids, all under one key."""

    key: bytes

    def patient(self, identity: Identity) -> str:
        """Return the id of a patient; if the header names none, derive it from the study."""
        return "P" + self._hash("patient", identity.patient or f"study {identity.study}")

    def study(self, identity: Identity) -> str:
        """Return the id of a study."""
        return "S" + self._hash("study", identity.patient, identity.study)

    def stack(self, identity: Identity, parts: Iterable[str]) -> str:
        """Return the id of a stack from `parts`, which every export of the stack shares."""
        return "Q" + self._hash("stack", identity.patient, identity.study, *parts)

    def file(self, name: str) -> str:
        """Return the id of a file from its path below the source."""
        return "F" + self._hash("file", name)

    def digest(self, lines: Iterable[str]) -> str:
        """Return a keyed digest of lines, to recognise an unchanged input."""
        text = "\n".join(lines).encode("utf-8", "surrogateescape")
        return hmac.new(self.key, text, hashlib.sha256).hexdigest()

    def _hash(self, *parts: str) -> str:
        return self.digest(["\0".join(parts)])[:16]


def public_pseudonyms(layout: str) -> Pseudonyms:
    """Return the ids of a public set, which everybody makes alike: its subjects' names are no secret."""
    return Pseudonyms(hashlib.sha256(f"cardiolens public set {layout}".encode()).digest())


def sex(person: Person) -> Sex | None:
    """Return the sex in the terms of study.json."""
    sexes: dict[str, Sex] = {"F": "female", "M": "male", "O": "other"}
    return sexes.get(person.sex.upper()[:1])


def age_band(person: Person) -> str | None:
    """Return the band of ten years of an age such as 054Y; 90 and above share one band."""
    match = re.fullmatch(r"(\d{1,3})([YMWD])", person.age.upper())
    if match is None:
        return None
    decade = int(match[1]) // 10 * 10 if match[2] == "Y" else 0
    return f"{_OLDEST}+" if decade >= _OLDEST else f"{decade}-{decade + 9}"


def vendor(person: Person) -> str | None:
    """Return the scanner's vendor from a closed list."""
    text = f"{person.manufacturer.lower()} "
    return next((name for start, name in _VENDORS.items() if text.startswith(start)), None)


def tesla(person: Person) -> float | None:
    """Return the field strength in tesla, rounded to a tenth; convert values in gauss."""
    field = person.tesla
    if field is None or field <= 0:
        return None
    field = round(field / 10_000 if field > 1000 else field, 1)
    return field if 0 < field <= 20 else None


def removed(images: Iterable[Image]) -> dict[str, int]:
    """Count the files that held each dropped element; private elements share one entry."""
    counts = Counter(tag for image in images if image.frame == 0 for tag in image.tags)
    return {tag: counts[tag] for tag in sorted(counts) if tag not in PASSES}
