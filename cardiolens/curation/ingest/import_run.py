"""Run an import: read all headers once, then import study by study; both on all cores."""

import json
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.provenance import code_of
from cardiolens.base.untrusted.bounded_files import parse_json, read_json, read_text
from cardiolens.base.untrusted.file_place import MOST_MEMBER, Place
from cardiolens.base.untrusted.resource_limits import limited
from cardiolens.config.ingest import IngestSpec
from cardiolens.curation.ingest import write
from cardiolens.curation.ingest.decisions import Choices, Decisions, read_decisions
from cardiolens.curation.ingest.deidentify import Pseudonyms, public_pseudonyms, read_key
from cardiolens.curation.ingest.find import Candidate, find
from cardiolens.curation.ingest.header import read_images
from cardiolens.curation.ingest.image import Image, LooseMask, RejectedError
from cardiolens.curation.ingest.layouts.assignment import (
    Assignment,
    assign,
    assign_dicom,
    propose_layout,
)
from cardiolens.curation.ingest.layouts.convention import Convention, convention
from cardiolens.curation.ingest.layouts.layout_file import write_layout
from cardiolens.curation.ingest.mixed_study import mixed, scattered
from cardiolens.curation.ingest.nifti.exported_files import NiftiSource
from cardiolens.curation.ingest.nifti.nifti_file import is_nifti
from cardiolens.curation.ingest.nifti.nifti_source import nifti_frames
from cardiolens.curation.ingest.pixels import MEMORY, decoded
from cardiolens.curation.ingest.reasons import MEANINGS, Reason
from cardiolens.curation.ingest.study import Imported, import_study
from cardiolens.runtime.processes import spread
from cardiolens.study.anatomy import heart

log = logging.getLogger(__name__)

Rejects = list[dict[str, Any]]
_WORTH = 400  # files from which further processes save more time than they take to start
NO_LAYOUT = "none"
_HEADER_SECONDS = 10  # of a processor; a header takes some milliseconds
_CHUNK = 32  # files per task of a process

_REFUSED = {
    "decision_refused_two_stacks": "another stack is confirmed as the same volume; confirm one of them",
    "decision_refused_sequence": "cine and perfusion have several phases, others one; correct the sequence",
    "decision_refused_spacing": "the size of its voxels is not settled by it; state spacing in the decision",
    "decision_refused_mask": "no such mask fits the stack, or it says not of which phase it is; correct it",
    "decision_refused_phase": "the stack has no such phase, or is no cycle or first pass; correct its phases",
}


@dataclass
class _Export:
    """Frames, files and rejects of a source."""

    studies: dict[str, list[Image]] = field(default_factory=dict)
    files: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)  # by study: name → size, stamp
    masks: dict[str, list[LooseMask]] = field(default_factory=dict)  # by study
    rejects: Rejects = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # of rejected files by id; only for `links`
    n_files: int = 0
    convention: Convention | None = None  # the layout that says what each file is
    pseudonyms: Pseudonyms | None = None  # of a public set, instead of those under the key


@dataclass(frozen=True, slots=True)
class _Task:
    """One study to import, with all inputs of a worker process."""

    spec: IngestSpec
    study_id: str
    images: Sequence[Image]
    files: dict[str, tuple[int, int]]  # name → size, stamp
    names: Pseudonyms
    choices: Choices
    layout: str | None = None  # digest of the layout that says what each file is
    masks: Sequence[LooseMask] = ()
    unreadable: frozenset[Place] = frozenset()  # files that ended the process that read them


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Result of one study: its build record, its rejects, and the names of rejected files by id."""

    build: dict[str, Any]
    rejects: Rejects
    names: dict[str, str]


def ingest(spec: IngestSpec) -> int:
    """Import an export; return 0 if at least one study has a volume and no study failed, else 1."""
    return ingest_by_layout(spec)[0]


def ingest_by_layout(spec: IngestSpec) -> tuple[int, Convention | None]:
    """Import an export; return what `ingest` returns, and the layout that said what each file is."""
    started = time.monotonic()
    names = Pseudonyms(read_key(_key_of(spec)))
    decisions = read_decisions(spec.decisions) if spec.decisions is not None else Decisions()
    export = _read(spec, names)
    names = export.pseudonyms or names
    _check_found(spec, export)
    spec.out.mkdir(parents=True, exist_ok=True)
    rejects, builds = list(export.rejects), []
    layout = None if export.convention is None else digest_of(export.convention.model_dump(mode="json"))
    tasks = [
        _Task(
            spec,
            study_id,
            images,
            export.files[study_id],
            names,
            decisions.of(study_id),
            layout,
            masks=export.masks.get(study_id, ()),
        )
        for study_id, images in sorted(export.studies.items())
    ]
    for outcome in spread(_study, tasks, worth=export.n_files >= _WORTH, lost=_without_deadly_files):
        builds.append(outcome.build)
        rejects += outcome.rejects
        export.names |= outcome.names
        _report_study(outcome.build)
    rejects.sort(key=lambda line: (line["file"], line["frame"]))
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in rejects)
    disk.write_text(spec.out / write.REJECTS_NAME, text)
    if export.convention is not None:
        write_layout(spec.out, export.convention)
    if spec.links is not None:
        _write_links(spec.links, export, names)
    if spec.decisions is not None:
        _report_decisions(decisions, builds)
    return _report(spec, builds, rejects, export, time.monotonic() - started), export.convention


def _key_of(spec: IngestSpec) -> Path:
    """Return the path of the key: as configured, else beside `out`."""
    return spec.key or spec.out.with_name(f"{spec.out.resolve().name}.key")


def _read(spec: IngestSpec, names: Pseudonyms) -> _Export:
    export = _Export()
    digests_seen: set[str] = set()
    nifti, sources = NiftiSource(), dict[str, Candidate]()
    plain_files: dict[str, Candidate] = {}
    for candidate in find(spec.source):
        export.n_files += 1
        name = _relative(candidate.place.name, spec.source)
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
    for (name, candidate), images in zip(dicom, headers, strict=True):
        if isinstance(images, tuple):
            _reject(export, names.file(name), name, *images)
        else:
            ours = images if assignment is None else assignment.of_subject(name, images)
            _sort_in(export, ours, candidate, name, names=names, digests_seen=digests_seen)
            if assignment is not None:
                _note_outlines(export, ours, assignment, sources, names)
    _read_nifti(export, nifti, sources, names, assignment)
    for study_id in scattered(export.studies):
        [image] = export.studies.pop(study_id)
        name = _relative(image.place.name, spec.source)
        _reject(export, names.file(name), name, Reason.STUDY_PER_IMAGE, frame=image.frame)
    return export


def _note_outlines(
    export: _Export,
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


def _by_layout(export: _Export, assignment: Assignment, names: Pseudonyms) -> Pseudonyms:
    """Note the layout of an export; return the pseudonyms of its ids."""
    export.convention = assignment.convention
    if assignment.convention.public:
        export.pseudonyms = public_pseudonyms(assignment.convention.name)
    return export.pseudonyms or names


def _of_layout(
    export: _Export, assignment: Assignment, names: Pseudonyms, files: Sequence[tuple[str, Candidate]]
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


def _read_nifti(
    export: _Export,
    nifti: NiftiSource,
    sources: dict[str, Candidate],
    names: Pseudonyms,
    assignment: Assignment | None,
) -> None:
    frames = nifti_frames(nifti, assignment)
    for name, frame, reason, detail in frames.rejects:
        _reject(export, names.file(name), name, reason, detail, frame=frame)
    for name, images in frames.images.items():
        _sort_in(export, images, sources[name], name, names=names, digests_seen=set())
    for name, path in frames.used.items():
        if path in frames.images:
            study_id = names.study(frames.images[path][0].identity)
            export.files[study_id][name] = (sources[name].size, sources[name].stamp)
    for path, masks in frames.masks.items():
        export.masks[names.study(frames.images[path][0].identity)] = masks


def _sort_in(
    export: _Export,
    images: Sequence[Image],
    candidate: Candidate,
    name: str,
    *,
    names: Pseudonyms,
    digests_seen: set[str],
) -> None:
    for image in images:
        study_id = names.study(image.identity)
        export.files.setdefault(study_id, {})[name] = (candidate.size, candidate.stamp)
        instance = image.identity.instance
        if instance and instance in digests_seen:
            _reject(export, names.file(name), name, Reason.DUPLICATE, frame=image.frame, study_id=study_id)
            continue
        digests_seen.add(instance)
        export.studies.setdefault(study_id, []).append(image)


def _reject(
    export: _Export,
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


def _relative(name: str, source: Path) -> str:
    """Return a file's path below the source: ids derive from it, so that a moved export keeps its ids."""
    return (
        os.path.relpath(name, source)
        if source.is_dir()
        else name.removeprefix(str(source.parent)).lstrip("/")
    )


def _check_found(spec: IngestSpec, export: _Export) -> None:
    if not export.n_files:
        raise InputError(
            f"source={spec.source}: holds no files; expected an export of DICOM or NIfTI; correct source"
        )
    if not export.studies:
        reasons = sorted({str(line["reason"]) for line in export.rejects})
        raise InputError(
            f"source={spec.source}: none of its {export.n_files} files is a usable MR image in DICOM "
            f"or NIfTI ({', '.join(reasons)}); correct source"
        )


def _study(task: _Task) -> _Outcome:
    """Import one study; reuse an earlier import of the same files with the same options."""
    spec, study_id, images, names = task.spec, task.study_id, task.images, task.names
    options = {
        "threshold": spec.threshold,
        "lge": spec.lge,
        "cohort": list(spec.cohort),
        "layout": task.layout,
    }
    choice_lines = (f"{stack} {choice.model_dump_json()}" for stack, choice in sorted(task.choices.items()))
    provenance = {
        "input_sha256": names.digest(
            f"{name} {size} {stamp}" for name, (size, stamp) in sorted(task.files.items())
        ),
        "options": options,
        "decisions_sha256": names.digest(choice_lines) if task.choices else None,
        "code": digest_of([code_of(__name__), heart().digest]),
    }
    folder = write.Places.of(spec.out, study_id).proposals
    cached_build = _reusable_build(folder, provenance)
    if cached_build is not None:
        lines = read_text(folder / write.REJECTS_NAME).splitlines()
        rejects = [parse_json(line) for line in lines]
        by_id = {names.file(name): name for name in task.files}
        name_of = {line["file"]: by_id.get(line["file"], "") for line in rejects}
        return _Outcome(cached_build | {"unchanged": True}, rejects, name_of)
    try:
        return _import_task(task, provenance)
    except (OSError, MemoryError) as error:
        raise RunError(
            f"{study_id}: stopped ({type(error).__name__}); free disk space or memory, and run it again"
        ) from error
    except Exception as error:  # an unforeseen error in one study must not stop the others
        log.debug("%s failed", study_id, exc_info=True)
        imported = Imported(left_out=[(image, Reason.FAILED) for image in images])
        imported.details = {(image.place.name, image.frame): type(error).__name__ for image in images}
        return _write_outcome(task, provenance, imported)


def _without_deadly_files(task: _Task) -> _Outcome:
    """Import a study again whose process ended: the files that end a process are found, and left out."""
    readings = {image.place: image.reading for image in task.images}
    ways = [(place, None if read is None else read.one_phase) for place, read in sorted(readings.items())]
    lives = spread(_is_decoded, ways, worth=False, lost=lambda _: False)
    deadly = frozenset(place for (place, _), alive in zip(ways, lives, strict=True) if not alive)
    [outcome] = spread(_study, [replace(task, unreadable=deadly)], worth=False, lost=_failed)
    return outcome


def _is_decoded(way: tuple[Place, bool | None]) -> bool:
    """Decode a file as the import would, and return True; a file that kills the process returns nothing."""
    place, one_phase = way
    with suppress(RejectedError, OSError):
        decoded(place, one_phase=one_phase)
    return True


def _failed(task: _Task) -> _Outcome:
    raise RunError(
        f"{task.study_id}: its import was killed, perhaps for lack of memory; free some, and run it again"
    )


def _import_task(task: _Task, provenance: dict[str, Any]) -> _Outcome:
    images = task.images
    if why := mixed(images):
        refused = Imported(left_out=[(image, Reason.MIXED_STUDY) for image in images])
        refused.details = {(image.place.name, image.frame): why for image in images}
        return _write_outcome(task, provenance, refused)
    imported = import_study(
        images,
        task.spec.lge,
        task.spec.threshold,
        identify=lambda parts: task.names.stack(images[0].identity, parts),
        choices=task.choices,
        masks=task.masks,
        unreadable=task.unreadable,
    )
    return _write_outcome(task, provenance, imported)


def _write_outcome(task: _Task, provenance: dict[str, Any], imported: Imported) -> _Outcome:
    name_of: dict[str, str] = {}
    rejects = list(_study_rejects(task, imported, name_of))
    build = write.write_study(
        task.spec.out, task.study_id, task.images, imported,
        names=task.names, provenance=provenance, rejects=rejects, choices=task.choices,
    )  # fmt: skip
    return _Outcome(build, rejects, name_of)


def _reusable_build(folder: Path, provenance: dict[str, Any]) -> dict[str, Any] | None:
    try:
        build: dict[str, Any] = read_json(folder / write.BUILD_NAME)
    except (OSError, ValueError):
        return None
    is_current = all(build.get(name) == value for name, value in provenance.items())
    return build if is_current and write.is_whole(folder, build) else None


def _study_rejects(task: _Task, imported: Imported, name_of: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield a line for each frame that was left out, and add its file's name to `name_of`."""
    for image, reason in imported.left_out:
        name = _relative(image.place.name, task.spec.source)
        file = task.names.file(name)
        name_of[file] = name
        detail = imported.details.get((image.place.name, image.frame), "")
        yield write.reject(file, reason, frame=image.frame, detail=detail, study_id=task.study_id)


def _write_links(path: Path, export: _Export, names: Pseudonyms) -> None:
    """Write the links file (id to patient, id to file): the only output that names patients."""
    lines: list[dict[str, str]] = []
    for study_id, images in sorted(export.studies.items()):
        identity = images[0].identity
        lines.append(
            {
                "study_id": study_id,
                "patient_id": names.patient(identity),
                "patient": identity.patient,
                "study": identity.study,
                "accession": identity.accession,
                "date": identity.date,
            }
        )
    lines += [{"file": file, "name": name} for file, name in sorted(export.names.items())]
    text = "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in lines)
    disk.write_private(path, text.encode())


def _report_study(build: dict[str, Any]) -> None:
    flags = f"; look at: {', '.join(build['flags'])}" if build["flags"] else ""
    waiting = f"; waiting for a person: {', '.join(build['waiting'])}" if build["waiting"] else ""
    before = " (unchanged)" if build.get("unchanged") else ""
    say(f"{build['study_id']}: {', '.join(build['volumes']) or 'no volume'}{waiting}{flags}{before}")


def _report_decisions(decisions: Decisions, builds: Sequence[dict[str, Any]]) -> None:
    """Print how many decisions were applied, which were refused, and how many fit no stack here."""
    fits, applied = sum(build["decisions"]["fit"] for build in builds), 0
    for build in builds:
        applied += build["decisions"]["applied"]
        for stack, reason in build["decisions"]["refused"].items():
            say(f"{build['study_id']}: decision on {stack} refused: {_REFUSED[reason]}")
    n_others = decisions.count - fits
    say(f"decisions: {applied} applied, {fits - applied} refused, {n_others} fit nothing in this export")


def _report(
    spec: IngestSpec, builds: Sequence[dict[str, Any]], rejects: Rejects, export: _Export, seconds: float
) -> int:
    counts: dict[str, int] = {}
    for line in rejects:
        counts[line["reason"]] = counts.get(line["reason"], 0) + 1
    for reason, count in sorted(counts.items()):
        say(f"left out: {count} x {reason}: {MEANINGS[Reason(reason)]}")
    with_volumes = [build for build in builds if build["volumes"]]
    frames = sum(build["frames"] for build in builds)
    say(
        f"{export.n_files} files, {frames} frames, {len(builds)} studies: {len(with_volumes)} with volumes, "
        f"{sum(bool(build['flags'] or build['waiting']) for build in builds)} to look at ({seconds:.1f} s)"
    )
    say(
        f"next: look at {spec.out / 'proposals'}, then python -m cardiolens.prepare dataset=real "
        f"dataset.studies={spec.out / 'studies'} dataset.questions=..."
    )
    failed = any(str(Reason.FAILED) in build["left_out"] for build in builds)
    return 0 if with_volumes and not failed else 1
