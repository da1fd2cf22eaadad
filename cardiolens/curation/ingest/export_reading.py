"""Read all headers of an export: its frames by study, its files, and what is rejected."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cardiolens.base.console import say
from cardiolens.base.untrusted.file_place import MOST_MEMBER, Place
from cardiolens.base.untrusted.resource_limits import limited
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest import write
from cardiolens.curation.ingest.copies import SHARED_FLAG, copies_and_namesakes
from cardiolens.curation.ingest.deidentify import Pseudonyms, public_pseudonyms
from cardiolens.curation.ingest.find import Candidate, find
from cardiolens.curation.ingest.header import read_images
from cardiolens.curation.ingest.image import Image, LooseMask, RejectedError
from cardiolens.curation.ingest.layouts.assignment import Assignment, assign, assign_dicom, propose_layout
from cardiolens.curation.ingest.layouts.convention import Convention, convention
from cardiolens.curation.ingest.mixed_study import corrected_patients, scattered
from cardiolens.curation.ingest.nifti.exported_files import Frames, NiftiSource
from cardiolens.curation.ingest.nifti.nifti_file import is_nifti
from cardiolens.curation.ingest.nifti.nifti_source import nifti_frames
from cardiolens.curation.ingest.pixels import MEMORY
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.runtime.processes import spread

Rejects = list[dict[str, Any]]
_ByFile = list[tuple[str, Candidate, list[Image]]]
NO_LAYOUT = "none"
_WORTH = 400  # files from which further processes save more time than they take to start
_HEADER_SECONDS = 10  # of a processor; a header takes some milliseconds
_CHUNK = 32  # files per task of a process


@dataclass
class Export:
    """Frames, files and rejects of a source."""

    studies: dict[str, list[Image]] = field(default_factory=dict)
    files: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)  # by study: name → size, stamp
    masks: dict[str, list[LooseMask]] = field(default_factory=dict)  # by study
    rejects: Rejects = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # of rejected files by id; only for `links`
    n_files: int = 0
    convention: Convention | None = None  # the layout that says what each file is
    pseudonyms: Pseudonyms | None = None  # of a public set, instead of those under the key


def read_export(spec: IngestSpec, names: Pseudonyms) -> Export:
    """Read the headers of all files of a source."""
    export = Export()
    nifti, sources = NiftiSource(), dict[str, Candidate]()
    plain_files: dict[str, Candidate] = {}
    for candidate in find(spec.source):
        export.n_files += 1
        name = path_below(candidate.place.name, spec.source)
        if candidate.reason is not None:
            _reject(export, names.file(name), name, candidate.reason)
        elif is_nifti(name):
            nifti.files[name], sources[name] = candidate.place, candidate
        elif nifti.takes(name, candidate.place):
            sources[name] = plain_files[name] = candidate
        else:
            plain_files[name] = candidate
    assignment = _assigned(spec, nifti, plain_files)
    dicom = [pair for pair in plain_files.items() if pair[0] not in sources]
    if assignment is not None:
        names = _by_layout(export, assignment, names)
        sources |= {name: plain_files[name] for name in assignment.information}
        dicom = _of_layout(export, assignment, names, dicom)
    places = [candidate.place for _, candidate in dicom]
    headers = spread(
        _headers, places, chunk=_CHUNK, worth=len(places) >= _WORTH, lost=lambda _: (Reason.READER_ENDED, "")
    )
    by_file: _ByFile = []
    for (name, candidate), images in zip(dicom, headers, strict=True):
        if isinstance(images, tuple):
            _reject(export, names.file(name), name, *images)
        else:
            of_subject = images if assignment is None else assignment.of_subject(name, images)
            by_file.append((name, candidate, of_subject))
    by_file = by_file if assignment is not None else list(_of_people(export, by_file, names))
    copies, namesakes = copies_and_namesakes(image for _, _, images in by_file for image in images)
    for name, candidate, images in by_file:
        flagged = [_flagged(image) if image in namesakes else image for image in images]
        _sort_in(export, flagged, candidate, name, names=names, copies=copies)
        if assignment is not None:
            _note_outlines(export, images, assignment, sources, names)
    _read_nifti(export, nifti_frames(nifti, assignment, spec.subject), sources, names)
    for study_id in scattered(export.studies):
        [image] = export.studies.pop(study_id)
        name = path_below(image.place.name, spec.source)
        _reject(export, names.file(name), name, Reason.STUDY_PER_IMAGE, frame=image.frame)
    return export


def _of_people(
    export: Export, by_file: _ByFile, names: Pseudonyms
) -> Iterator[tuple[str, Candidate, list[Image]]]:
    """Yield files with the patients that headers tell apart; reject images whose patient is unclear."""
    patients = corrected_patients(image for _, _, images in by_file for image in images)
    for name, candidate, images in by_file:
        usable = []
        for image in images:
            key = image.identity.patient, image.identity.study
            patient = patients.get(key, key[0])
            if patient is None:
                _reject(export, names.file(name), name, Reason.PATIENT_UNCLEAR, frame=image.frame)
            else:
                identity = replace(image.identity, patient=patient)
                usable.append(image if key not in patients else replace(image, identity=identity))
        yield name, candidate, usable


def _flagged(image: Image) -> Image:
    return replace(image, flags=(*image.flags, SHARED_FLAG))


def _note_outlines(
    export: Export,
    images: Sequence[Image],
    assignment: Assignment,
    sources: Mapping[str, Candidate],
    names: Pseudonyms,
) -> None:
    """Note the outlines of a subject among the files of its study, which is imported again if they change."""
    if not any(image.mask is not None for image in images):
        return
    study_id, subject = names.study(images[0].identity), images[0].identity.patient
    files = export.files.setdefault(study_id, {})
    for name, owner in assignment.outlines.files.items():
        if owner == subject and name not in files:
            files[name] = (sources[name].size, sources[name].stamp)


def _by_layout(export: Export, assignment: Assignment, names: Pseudonyms) -> Pseudonyms:
    """Note the layout of an export; return the pseudonyms of its ids."""
    export.convention = assignment.convention
    if assignment.convention.public:
        export.pseudonyms = public_pseudonyms(assignment.convention.name)
    return export.pseudonyms or names


def _of_layout(
    export: Export, assignment: Assignment, names: Pseudonyms, files: Sequence[tuple[str, Candidate]]
) -> list[tuple[str, Candidate]]:
    """Return the DICOM files that a layout names; reject those that it neither names nor takes facts from."""
    for name, _ in files:
        if name not in assignment.information and name not in assignment.subjects:
            _reject(export, names.file(name), name, Reason.NOT_OF_LAYOUT)
    return [pair for pair in files if pair[0] in assignment.subjects]


def _assigned(
    spec: IngestSpec, nifti: NiftiSource, plain_files: Mapping[str, Candidate]
) -> Assignment | None:
    """Return what each file is by the layout that is named, or by the one that fits; None without one."""
    if spec.layout == NO_LAYOUT:
        return None
    places = {name: candidate.place for name, candidate in plain_files.items()}
    if spec.layout is not None:
        chosen = convention(spec.layout)
        if chosen.dicom is not None:
            return assign_dicom(chosen, places)
    else:
        proposed = propose_layout(list(nifti.files))
        if proposed is None:
            return None
        chosen = proposed.convention
        say(f"layout={chosen.name} is taken: {proposed.evidence}; layout=none imports without one")
    return assign(chosen, nifti.files, places)


def _headers(place: Place) -> list[Image] | tuple[Reason, str]:
    """Return the frames of a file, or the reason and detail of its rejection."""
    try:
        with limited(MEMORY + MOST_MEMBER, _HEADER_SECONDS):
            return read_images(place)
    except RejectedError as error:
        return error.reason, error.detail
    except MemoryError:
        return Reason.TOO_LARGE, ""


def _read_nifti(export: Export, frames: Frames, sources: Mapping[str, Candidate], names: Pseudonyms) -> None:
    for name, frame, reason, detail in frames.rejects:
        _reject(export, names.file(name), name, reason, detail, frame=frame)
    for name, images in frames.images.items():
        _sort_in(export, images, sources[name], name, names=names, copies={})
    for name, path in frames.used.items():
        if path in frames.images:
            study_id = names.study(frames.images[path][0].identity)
            export.files[study_id][name] = (sources[name].size, sources[name].stamp)
    for path, masks in frames.masks.items():
        export.masks[names.study(frames.images[path][0].identity)] = masks


def _sort_in(
    export: Export,
    images: Sequence[Image],
    candidate: Candidate,
    name: str,
    *,
    names: Pseudonyms,
    copies: Mapping[Image, Reason],
) -> None:
    for image in images:
        study_id = names.study(image.identity)
        export.files.setdefault(study_id, {})[name] = (candidate.size, candidate.stamp)
        if image in copies:
            _reject(export, names.file(name), name, copies[image], frame=image.frame, study_id=study_id)
            continue
        export.studies.setdefault(study_id, []).append(image)


def _reject(
    export: Export,
    file: str,
    name: str,
    reason: Reason,
    detail: str = "",
    *,
    frame: int = 0,
    study_id: str | None = None,
) -> None:
    export.names[file] = name
    export.rejects.append(write.reject(file, reason, frame=frame, detail=detail, study_id=study_id))


def path_below(name: str, source: Path) -> str:
    """Return a file's path below the source: ids derive from it, so that a moved export keeps its ids."""
    return (
        os.path.relpath(name, source)
        if source.is_dir()
        else name.removeprefix(str(source.parent)).lstrip("/")
    )
