"""NIfTI files of an export: as they were found, with all that is known of each, and as frames."""

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from cardiolens.base.untrusted.file_place import Place
from cardiolens.curation.ingest.image import Image, LooseMask
from cardiolens.curation.ingest.layouts.assignment import FileRole
from cardiolens.curation.ingest.names import Name
from cardiolens.curation.ingest.nifti.nifti_file import Scan
from cardiolens.curation.ingest.nifti.sidecar import Sidecar
from cardiolens.curation.ingest.reasons import Reason

FEWEST_PHASES = 8  # for pixels to tell whether phases form a cycle
INFO = "info.cfg"  # of a folder: which phases are end-diastole and end-systole
_DESCRIPTIONS = ("dataset_description.json", "participants.json", "samples.json")


@dataclass
class NiftiSource:
    """NIfTI files and possible sidecars by path below the source."""

    files: dict[str, Place] = field(default_factory=dict)
    sidecars: dict[str, Place] = field(default_factory=dict)

    def takes(self, name: str, place: Place) -> bool:
        """Record a possible sidecar and return True; whether it has an image is decided later."""
        lower = PurePosixPath(name).name.lower()
        if not (lower.endswith(".json") or lower == INFO) or lower in _DESCRIPTIONS:
            return False
        self.sidecars[name] = place
        return True


@dataclass
class Frames:
    """Frames by file path, and rejects as (path, frame, reason, detail)."""

    images: dict[str, list[Image]] = field(default_factory=dict)
    rejects: list[tuple[str, int, Reason, str]] = field(default_factory=list)
    used: dict[str, str] = field(default_factory=dict)  # sidecar → one of its images
    masks: dict[str, list[LooseMask]] = field(default_factory=dict)  # of a study, by one of its images


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A NIfTI file with its parsed name, scan, sidecar and keys."""

    path: str
    name: Name
    scan: Scan
    sidecar: Sidecar
    patient: str
    study: str
    number: int  # rank of the file within the export
    ringed: bool = False  # a mask of its grid shows rings around cavities
    role: FileRole | None = None  # by a layout
