"""Sidecars of NIfTI files: BIDS JSON and ACDC's Info.cfg; only an allow-list of entries is read."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.curation.ingest.image import Person, RejectedError
from cardiolens.curation.ingest.reasons import Reason

MOST_BYTES = 4 << 20
ALLOWED = (
    *("Manufacturer", "MagneticFieldStrength", "PatientSex", "PatientAge", "Modality", "SeriesDescription"),
    *(
        "ProtocolName",
        "SequenceName",
        "PulseSequenceName",
        "ScanningSequence",
        "SequenceVariant",
        "ScanOptions",
    ),
    *("ImageType", "EchoTime", "InversionTime", "RepetitionTime", "FlipAngle", "SliceThickness"),
    *("PatientID", "PatientBirthDate", "StudyInstanceUID"),
    *("CardiacNumberOfImages", "BurnedInAnnotation", "PixelSpacing", "SpacingBetweenSlices", "VolumeTiming"),
)


@dataclass(frozen=True, slots=True)
class Sidecar:
    """Entries of a sidecar; times in ms."""

    entries: Mapping[str, Any] = field(default_factory=dict)
    others: int = 0  # number of ignored entries

    @property
    def tags(self) -> tuple[str, ...]:
        """Names of entries; ignored entries share one name, because their own may name people."""
        return (*sorted(self.entries), *(("other entries of sidecars",) if self.others else ()))

    def text(self, name: str) -> str:
        """Return a text entry, or an empty string."""
        value = self.entries.get(name)
        return value.strip() if isinstance(value, str) else ""

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list entry, or a text entry split at backslashes and underscores, in upper case."""
        value = self.entries.get(name)
        listed = (
            re.split(r"[\\_]", value) if isinstance(value, str) else value if isinstance(value, list) else []
        )
        return tuple(str(entry).strip().upper() for entry in listed if isinstance(entry, str))

    def number(self, name: str, scale: float = 1.0) -> float | None:
        """Return a finite number times `scale`; of a list the first number."""
        value = self.entries.get(name)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return float(value) * scale

    def count(self, name: str) -> int:
        """Return the length of a list entry; 0 for anything else."""
        value = self.entries.get(name)
        return len(value) if isinstance(value, list) else 0

    def spacing(self) -> tuple[float | None, float | None]:
        """Return the distance of rows and that of slices, mm, where the sidecar tells them."""
        return self.number("PixelSpacing"), self.number("SpacingBetweenSlices")

    def ids(self) -> tuple[str, str]:
        """Return the patient's ID and the study's UID, empty where the sidecar does not tell them."""
        return self.text("PatientID"), self.text("StudyInstanceUID")

    def person(self) -> Person:
        """Return the facts that a study may keep."""
        return Person(
            sex=self.text("PatientSex"),
            age=self.text("PatientAge"),
            manufacturer=self.text("Manufacturer"),
            tesla=self.number("MagneticFieldStrength"),
        )


def read_sidecar(content: bytes) -> Sidecar:
    """Parse a JSON sidecar; RejectedError if it is not a JSON object."""
    if len(content) > MOST_BYTES:
        raise RejectedError(Reason.BAD_SIDECAR, "too large")
    try:
        tree = parse_json(content)
    except (ValueError, UnicodeDecodeError):
        raise RejectedError(Reason.BAD_SIDECAR, "no JSON") from None
    if not isinstance(tree, dict):
        raise RejectedError(Reason.BAD_SIDECAR, "no object")
    entries = {name: tree[name] for name in ALLOWED if name in tree}
    return Sidecar(entries, len(tree) - len(entries))


def read_moments(content: bytes) -> dict[str, int]:
    """Parse the phase numbers (from 1) of ED and ES in an Info.cfg; RejectedError if it has neither."""
    if len(content) > MOST_BYTES:
        raise RejectedError(Reason.BAD_SIDECAR, "too large")
    text = content.decode("utf-8", "replace")
    moments = {
        name: int(number) for name, number in re.findall(r"(?m)^\s*(ED|ES)\s*[:=]\s*(\d{1,4})\s*$", text)
    }
    if not moments or min(moments.values()) < 1:
        raise RejectedError(Reason.BAD_SIDECAR, "names neither ED nor ES")
    return moments
