"""Files of an export, with or without extensions; their frames by study, and what is rejected."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import is_housekeeping
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.dicom import read_images
from cardiolens.curation.ingest.frame_records import Image, RejectedError
from cardiolens.curation.ingest.ids import Pseudonyms, public_pseudonyms
from cardiolens.curation.ingest.layouts.assignment import Assignment, assigned
from cardiolens.curation.ingest.layouts.convention import Convention
from cardiolens.curation.ingest.nifti_frames import Frames, NiftiSource, nifti_frames
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
_ByFile = list[tuple[str, "Candidate", list[Image]]]
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
    if stat.S_ISDIR(mode):
        for folder, folders, names in os.walk(source):
            folders.sort()
            for link in [name for name in folders if os.path.islink(os.path.join(folder, name))]:
                folders.remove(link)
                yield Candidate(Path(folder, link), reason=Reason.UNREADABLE, detail="a link")
            yield from (_candidate(Path(folder, name)) for name in sorted(names))
    elif stat.S_ISREG(mode):
        yield _candidate(source)
    else:
        raise InputError(f"source={source}: is neither a folder nor a file; {_SOURCE_EXPECTED}")


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
    elif status.st_size == 0:
        reason, detail = Reason.UNREADABLE, "empty"
    elif status.st_size > _MOST_BYTES:
        reason, detail = Reason.UNREADABLE, "too large"
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
    studies: dict[str, list[Image]] = field(default_factory=dict)
    files: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)  # by study: name → size, stamp
    rejects: Rejects = field(default_factory=list)
    name_of: dict[str, str] = field(default_factory=dict)  # of rejected files by id; only for `links`
    n_files: int = 0
    layout: Convention | None = None  # that says what each file is

    def reject(
        self, name: str, reason: Reason, detail: str = "", frame: int = 0, study: str | None = None
    ) -> None:
        """Add a line for a file, or a frame of it, that is left out."""
        file = self.names.file(name)
        self.name_of[file] = name
        self.rejects.append(reject(file, reason, frame=frame, detail=detail, study_id=study))

    def take(
        self, name: str, candidate: Candidate, images: Sequence[Image], copies: Mapping[Image, Reason]
    ) -> None:
        """Sort the frames of a file into studies, without copies."""
        for image in images:
            study_id = self.names.study(image.identity)
            self.use(study_id, name, candidate)
            if image in copies:
                self.reject(name, copies[image], frame=image.frame, study=study_id)
            else:
                self.studies.setdefault(study_id, []).append(image)

    def use(self, study_id: str, name: str, candidate: Candidate) -> None:
        """Note a file of a study, which is imported again if the file changes."""
        self.files.setdefault(study_id, {})[name] = (candidate.size, candidate.stamp)


def read_export(spec: IngestSpec, names: Pseudonyms) -> Export:
    """Read the headers of all files of a source."""
    export, nifti = Export(spec.source, names), NiftiSource()
    sources: dict[str, Candidate] = {}
    plain: dict[str, Candidate] = {}  # neither NIfTI nor perhaps a sidecar
    for candidate in find(spec.source):
        export.n_files += 1
        name = path_below(candidate.place, spec.source)
        if candidate.reason is not None:
            export.reject(name, candidate.reason, candidate.detail)
        elif nifti.takes(name, candidate.place):
            sources[name] = candidate
        else:
            plain[name] = candidate
    places = {name: each.place for name, each in (plain | sources).items() if name not in nifti.files}
    assignment = assigned(spec.layout, nifti.files, places)
    if assignment is not None:
        export.layout = assignment.layout
        export.names = public_pseudonyms(assignment.layout.name) if assignment.layout.public else names
        sources |= {name: (plain | sources)[name] for name in assignment.information}
    _read_dicom(
        export, {name: each for name, each in plain.items() if name not in sources}, assignment, sources
    )
    _read_nifti(export, nifti_frames(nifti, assignment, spec.subject), sources)
    for study_id in scattered(export.studies):
        [image] = export.studies.pop(study_id)
        detail = "one of many studies of a single image each"
        export.reject(path_below(image.place, spec.source), Reason.PATIENT_UNCLEAR, detail, image.frame)
    return export


def _read_dicom(
    export: Export,
    files: Mapping[str, Candidate],
    assignment: Assignment | None,
    sources: Mapping[str, Candidate],
) -> None:
    if assignment is not None:
        for name in files.keys() - assignment.subjects.keys():
            export.reject(name, Reason.NOT_OF_LAYOUT)
        files = {name: each for name, each in files.items() if name in assignment.subjects}
    places = [candidate.place for candidate in files.values()]
    rejection = (Reason.BROKEN_FILE, "it ended the process that read it")
    headers = spread(_headers, places, chunk=CHUNK, worth=len(places) >= WORTH, lost=lambda _: rejection)
    by_file: _ByFile = []
    for (name, candidate), images in zip(files.items(), headers, strict=True):
        if isinstance(images, tuple):
            export.reject(name, *images)
        else:
            of_subject = images if assignment is None else assignment.of_subject(name, images)
            by_file.append((name, candidate, of_subject))
    by_file = by_file if assignment is not None else list(_of_people(export, by_file))
    copies, namesakes = copies_and_namesakes(image for _, _, images in by_file for image in images)
    for name, candidate, images in by_file:
        flagged = [
            replace(image, flags=(*image.flags, Flag.REPEATS)) if image in namesakes else image
            for image in images
        ]
        export.take(name, candidate, flagged, copies)
        if assignment is not None and any(image.mask is not None for image in images):
            study_id, subject = export.names.study(images[0].identity), images[0].identity.patient
            for path, owner in assignment.outlines.files.items():
                if owner == subject:
                    export.use(study_id, path, sources[path])


def _of_people(export: Export, by_file: _ByFile) -> Iterator[tuple[str, Candidate, list[Image]]]:
    """Yield files with the patients that headers tell apart; reject images whose patient is unclear."""
    patients = corrected_patients(image for _, _, images in by_file for image in images)
    for name, candidate, images in by_file:
        usable = []
        for image in images:
            key = image.identity.patient, image.identity.study
            patient = patients.get(key, key[0])
            if patient is None:
                export.reject(name, Reason.PATIENT_UNCLEAR, frame=image.frame)
            elif patient == key[0]:
                usable.append(image)
            else:
                usable.append(replace(image, identity=replace(image.identity, patient=patient)))
        yield name, candidate, usable


def _headers(place: Path) -> list[Image] | tuple[Reason, str]:
    """Return the frames of a file, or the reason and detail of its rejection."""
    try:
        return read_images(place)
    except RejectedError as error:
        return error.reason, error.detail


def _read_nifti(export: Export, frames: Frames, sources: Mapping[str, Candidate]) -> None:
    for name, reason, detail in frames.rejects:
        export.reject(name, reason, detail)
    for name, images in frames.images.items():
        export.take(name, sources[name], images, {})
    for name, path in frames.used.items():
        if path in frames.images:
            export.use(export.names.study(frames.images[path][0].identity), name, sources[name])


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
