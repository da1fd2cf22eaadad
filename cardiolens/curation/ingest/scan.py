"""Files of an export, with or without extensions; their frames by study and person, and what is rejected."""

import hashlib
import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import is_housekeeping
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.assignment import Assignment, assigned
from cardiolens.curation.ingest.conventions import Convention
from cardiolens.curation.ingest.dicom import read_images
from cardiolens.curation.ingest.frame_records import Image, RejectedError, attempted
from cardiolens.curation.ingest.ids import Pseudonyms, public_pseudonyms
from cardiolens.curation.ingest.nifti_file import SUFFIXES
from cardiolens.curation.ingest.nifti_frames import nifti_frames
from cardiolens.curation.ingest.pixels import decoded
from cardiolens.curation.ingest.reasons import Flag, Reason
from cardiolens.runtime.processes import spread

Rejects = list[dict[str, Any]]
_MOST_BYTES = 4 << 30  # of one file
_OF_DISCS = {"dicomdir", "autorun.inf"}  # the index and the autostart file of a disc
_ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
_SOURCE_EXPECTED = "expected a folder or a file of an export; correct source"
WORTH = 400  # files from which further processes save more time than they take to start
CHUNK = 32  # files per task of a process
_FACTS: dict[str, Callable[[Image], str]] = {
    "manufacturers": lambda image: image.person.manufacturer.upper().split(" ")[0],
    "models": lambda image: image.person.model.upper(),
    "field strengths": lambda image: "" if image.person.tesla is None else f"{image.person.tesla:.1f}",
    "sexes": lambda image: image.person.sex.upper(),
    "ages": lambda image: image.person.age.upper(),
    "dates of birth": lambda image: image.identity.birth_date,
    "dates": lambda image: image.identity.date,
    "serial numbers": lambda image: image.identity.device.upper(),
}
_LONGEST_S = 5 * 3600.0  # of an examination
_DAY_S = 24 * 3600.0
_SCATTERED = 20  # studies of one image each, from which a patient's ids are spoilt
_NOBODY = re.compile(r"anon\w*|unknown|none|null|n/a|xxx+|0+|patient|removed|deidentified", re.IGNORECASE)


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
    """Yield images with the patients that headers distinguish; reject images of an unclear patient."""
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
        "message": reason.meaning + (f" ({detail})" if detail else ""),
    }


def path_below(file: Path, source: Path) -> str:
    """Return a file's path below the source: ids derive from it, so that a moved export keeps its ids."""
    return os.path.relpath(file, source) if source.is_dir() else file.name


# Which person an image is of: one examination has one scanner and one person, and lasts hours. Derived images
# may come from a workstation, and do not count.


def scattered(studies: Mapping[str, Sequence[Image]]) -> set[str]:
    """Return the studies of a patient who has many of one image each: their ids were spoilt."""
    of_patient: dict[str, list[str]] = defaultdict(list)
    for study_id, images in studies.items():
        if images[0].nifti is None:
            of_patient[images[0].identity.patient].append(study_id)
    spoilt = [ids for ids in of_patient.values() if len(ids) >= _SCATTERED]
    return {each for ids in spoilt if all(len(studies[id_]) == 1 for id_ in ids) for each in ids}


def corrected_patients(images: Iterable[Image]) -> dict[tuple[str, str], str | None]:
    """Return the patient of each study (PatientID, study) with a misleading id; None if it is unclear.

    An id such as ANON stands for nobody, so that each study is a patient. Studies of one id with several
    birth dates, or else several sexes, are of as many people; one that states neither is unclear.
    """
    studies: dict[str, dict[str, list[Image]]] = defaultdict(lambda: defaultdict(list))
    for image in images:
        studies[image.identity.patient][image.identity.study].append(image)
    patients: dict[tuple[str, str], str | None] = {}
    for patient, members in studies.items():
        if _NOBODY.fullmatch(patient):
            patients |= {(patient, study): "" for study in members}
            continue
        for fact in (_FACTS["dates of birth"], _FACTS["sexes"]) if patient else ():
            stated = {study: "/".join(sorted({*map(fact, of)} - {""})) for study, of in members.items()}
            if len({*stated.values()} - {""}) > 1:
                renamed = {study: f"{patient} ({text})" if text else None for study, text in stated.items()}
                patients |= {(patient, study): name for study, name in renamed.items()}
                break
    return patients


def mixed(images: Sequence[Image]) -> str:
    """Return what of one examination differs within a study's original images, else nothing."""
    originals = [image for image in images if image.image_type[:1] != ("DERIVED",)]
    several = [name for name, fact in _FACTS.items() if len({*map(fact, originals)} - {""}) > 1]
    if several:
        return f"several {', '.join(several)}"
    clocks = sorted({each.clock for each in originals if each.clock is not None and each.nifti is None})
    if not clocks:
        return ""
    longest_pause = max(np.diff([*clocks, clocks[0] + _DAY_S]))  # an examination may pass midnight
    lasts_s = float(_DAY_S - longest_pause)
    return f"it lasts {lasts_s / 3600:.0f} hours" if lasts_s > _LONGEST_S else ""


def copies_and_namesakes(images: Iterable[Image]) -> tuple[dict[Image, Reason], set[Image]]:
    """Return why some images are left out beside another of their UID, and different images that share one.

    Two images are one if UID, position, time and pixels are the same. Where the pixels of only one can be
    decoded, the other is a damaged copy.
    """
    by_uid: dict[str, list[Image]] = defaultdict(list)
    for image in images:
        by_uid[image.identity.instance].append(image)
    shared = [group for uid, group in by_uid.items() if uid and len(group) > 1]
    places = sorted({image.place for group in shared for image in group})
    by_place = spread(_digests, places, chunk=CHUNK, worth=len(places) >= WORTH, lost=lambda _: {})
    digests = dict(zip(places, by_place, strict=True))
    copies: dict[Image, Reason] = {}
    namesakes: set[Image] = set()
    for group in shared:
        keys = {each: (_header(each), digests[each.place].get(each.frame, "")) for each in group}
        decoded_headers = {header for header, digest in keys.values() if digest}
        firsts: dict[Hashable, Image] = {}
        for image, (header, digest) in keys.items():
            if not digest and header in decoded_headers:
                copies[image] = Reason.BROKEN_FILE
            elif firsts.setdefault((header, digest), image) is not image:
                copies[image] = Reason.DUPLICATE
        namesakes |= set(firsts.values()) if len(firsts) > 1 else set()
    return copies, namesakes


def _header(image: Image) -> Hashable:
    """Return where and when a frame was taken."""
    place = (*image.position, *image.row_direction, *image.column_direction)
    times = (image.trigger, image.temporal, image.clock)
    number = image.instance_number if times == (None, None, None) else None
    return (*(round(value, 2) for value in place), *times, number)


def _digests(place: Path) -> dict[int, str]:
    """Return a digest of each frame's values, however they are stored; none if they cannot be decoded."""
    try:
        frames = decoded(place)
    except (RejectedError, OSError):
        return {}
    values = (frame.astype("<f8").tobytes() for frame in frames)
    return {number: hashlib.sha256(each).hexdigest() for number, each in enumerate(values)}
