"""Files of an export, with or without extensions; their frames by study, and what is rejected."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import is_housekeeping
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.dicom import read_images
from cardiolens.curation.ingest.frame_records import Image, attempted
from cardiolens.curation.ingest.ids import Pseudonyms, public_pseudonyms
from cardiolens.curation.ingest.layouts.assignment import Assignment, assigned
from cardiolens.curation.ingest.layouts.convention import Convention
from cardiolens.curation.ingest.nifti_file import SUFFIXES
from cardiolens.curation.ingest.nifti_frames import nifti_frames
from cardiolens.curation.ingest.reasons import MEANINGS, Flag, Reason
from cardiolens.curation.ingest.whose_images import (
    CHUNK,
    WORTH,
    copies_and_namesakes,
    corrected_patients,
    scattered,
)
from cardiolens.runtime.processes import spread

Rejects = list[dict[str, Any]]
_MOST_BYTES = 4 << 30  # of one file
_OF_DISCS = {"dicomdir", "autorun.inf"}  # the index and the autostart file of a disc
_ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
_SOURCE_EXPECTED = "expected a folder or a file of an export; correct source"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file of an export, with the reason if the import must not read the file."""

    place: Path
    size: int = 0
    stamp: int = 0  # modification time of the file, ns
    reason: Reason | None = None
    detail: str = ""


def find(source: Path) -> Iterator[Candidate]:
    """Yield every file below a source, sorted by path; InputError if the source cannot be read."""
    try:
        mode = source.stat().st_mode
    except OSError as error:
        raise InputError(f"source={source}: cannot be read ({error.strerror}); {_SOURCE_EXPECTED}") from None
    if stat.S_ISREG(mode):
        yield _candidate(source)
    elif not stat.S_ISDIR(mode):
        raise InputError(f"source={source}: is neither a folder nor a file; {_SOURCE_EXPECTED}")
    for folder, folders, names in os.walk(source):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in folders if name not in links]
        yield from (_candidate(Path(folder, name)) for name in (*links, *sorted(names)))


def _candidate(path: Path) -> Candidate:
    try:
        status = path.lstat()
    except OSError as error:
        return Candidate(path, reason=Reason.UNREADABLE, detail=error.strerror or "")
    reason, detail = None, ""
    if not stat.S_ISREG(status.st_mode):
        reason, detail = Reason.UNREADABLE, "a link or no file"
    elif any(map(is_housekeeping, path.parts)) or path.name.lower() in _OF_DISCS:
        reason = Reason.HOUSEKEEPING
    elif not 0 < status.st_size <= _MOST_BYTES:
        reason, detail = Reason.UNREADABLE, "too large" if status.st_size else "empty"
    elif not os.access(path, os.R_OK):
        reason, detail = Reason.UNREADABLE, "no permission"
    elif path.name.lower().endswith(_ARCHIVES):
        reason = Reason.PACKED
    return Candidate(path, status.st_size, status.st_mtime_ns, reason, detail)


@dataclass
class Export:
    """Frames, files and rejects of a source."""

    source: Path
    names: Pseudonyms
    candidates: dict[str, Candidate] = field(default_factory=dict)  # by path below the source
    studies: dict[str, list[Image]] = field(default_factory=dict)
    files: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)  # by study: name → size, stamp
    rejects: Rejects = field(default_factory=list)
    layout: Convention | None = None  # that says what each file is

    def reject(
        self, name: str, reason: Reason, detail: str = "", frame: int = 0, study: str | None = None
    ) -> None:
        """Add a line for a file, or a frame of it, that is left out."""
        self.rejects.append(reject(self.names.file(name), reason, frame=frame, detail=detail, study_id=study))

    def take(self, name: str, image: Image, reason: Reason | None = None) -> None:
        """Put a frame of a file into its study, or leave it out there with a reason."""
        study_id = self.use(image, name)
        if reason is None:
            self.studies.setdefault(study_id, []).append(image)
        else:
            self.reject(name, reason, frame=image.frame, study=study_id)

    def use(self, image: Image, name: str) -> str:
        """Note a file of a frame's study, which is imported again if the file changes; return its id."""
        study_id, file = self.names.study(image.identity), self.candidates[name]
        self.files.setdefault(study_id, {})[name] = (file.size, file.stamp)
        return study_id


def read_export(spec: IngestSpec, names: Pseudonyms) -> Export:
    """Read the headers of all files of a source."""
    export = Export(spec.source, names)
    nifti, jsons, plain = dict[str, Path](), dict[str, Path](), dict[str, Path]()
    for candidate in find(spec.source):
        name = path_below(candidate.place, spec.source)
        export.candidates[name] = candidate
        if candidate.reason is not None:
            export.reject(name, candidate.reason, candidate.detail)
            continue
        is_nifti, is_json = name.lower().endswith(SUFFIXES), name.lower().endswith(".json")
        (nifti if is_nifti else jsons if is_json else plain)[name] = candidate.place
    assignment = assigned(spec.layout, nifti, plain | jsons)
    if assignment is not None:
        export.layout = assignment.layout
        export.names = public_pseudonyms(assignment.layout.name) if assignment.layout.public else names
        plain = {name: place for name, place in plain.items() if name not in assignment.information}
    _read_dicom(export, plain, assignment)
    frames = nifti_frames(nifti, jsons, assignment, spec.subject)
    for name, reason, detail in frames.rejects:
        export.reject(name, reason, detail)
    for name, images in frames.images.items():
        for image in images:
            export.take(name, image)
    for name, path in frames.used.items():
        if path in frames.images:
            export.use(frames.images[path][0], name)
    for study_id in scattered(export.studies):
        [image] = export.studies.pop(study_id)
        detail = "one of many studies of a single image each"
        export.reject(path_below(image.place, spec.source), Reason.PATIENT_UNCLEAR, detail, image.frame)
    return export


def _read_dicom(export: Export, files: Mapping[str, Path], assignment: Assignment | None) -> None:
    if assignment is not None:
        for name in files.keys() - assignment.subjects.keys():
            export.reject(name, Reason.NOT_OF_LAYOUT)
        files = {name: place for name, place in files.items() if name in assignment.subjects}
    rejection = (Reason.BROKEN_FILE, "it ended the process that read it")
    headers = spread(
        partial(attempted, read_images),
        files.values(),
        chunk=CHUNK,
        worth=len(files) >= WORTH,
        lost=lambda _: rejection,
    )
    read: list[tuple[str, Image]] = []
    for name, images in zip(files, headers, strict=True):
        if isinstance(images, tuple):
            export.reject(name, *images)
        else:
            of_subject = images if assignment is None else assignment.of_subject(name, images)
            read += [(name, image) for image in of_subject]
    if assignment is None:
        read = list(_of_people(export, read))
    copies, namesakes = copies_and_namesakes(image for _, image in read)
    for name, image in read:
        flagged = replace(image, flags=(*image.flags, Flag.REPEATS)) if image in namesakes else image
        export.take(name, flagged, copies.get(image))


def _of_people(export: Export, read: list[tuple[str, Image]]) -> Iterator[tuple[str, Image]]:
    """Yield images with the patients that headers tell apart; reject images whose patient is unclear."""
    patients = corrected_patients(image for _, image in read)
    for name, image in read:
        key = image.identity.patient, image.identity.study
        patient = patients.get(key, key[0])
        if patient is None:
            export.reject(name, Reason.PATIENT_UNCLEAR, frame=image.frame)
        else:
            yield name, replace(image, identity=replace(image.identity, patient=patient))


def reject(
    file: str, reason: Reason, *, frame: int = 0, detail: str = "", study_id: str | None = None
) -> dict[str, Any]:
    """Return a line of rejects.jsonl; `file` is a file's id, never its name."""
    return {
        "schema": "reject-1",
        "stage": "intake",
        "study_id": study_id,
        "file": file,
        "frame": frame,
        "reason": str(reason),
        "message": MEANINGS[reason] + (f" ({detail})" if detail else ""),
    }


def path_below(file: Path, source: Path) -> str:
    """Return a file's path below the source: ids derive from it, so that a moved export keeps its ids."""
    return os.path.relpath(file, source) if source.is_dir() else file.name
