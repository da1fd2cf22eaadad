"""Import one study in a worker process, or reuse an earlier import of the same files."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cardiolens.base import stage_versions
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import RunError
from cardiolens.base.untrusted.bounded_files import parse_json, read_json, read_text
from cardiolens.base.untrusted.file_place import Place
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest import write
from cardiolens.curation.ingest.decisions import Choices
from cardiolens.curation.ingest.deidentify import Pseudonyms
from cardiolens.curation.ingest.export_reading import Rejects, path_below
from cardiolens.curation.ingest.image import Image, LooseMask, RejectedError
from cardiolens.curation.ingest.imported_volume import Imported
from cardiolens.curation.ingest.mixed_study import mixed
from cardiolens.curation.ingest.pixels import decoded
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.study import import_study
from cardiolens.runtime.processes import spread
from cardiolens.study.anatomy import heart

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StudyTask:
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
class StudyOutcome:
    """Result of one study: its build record, its rejects, and the names of rejected files by id."""

    build: dict[str, Any]
    rejects: Rejects
    names: dict[str, str]


def import_or_reuse(task: StudyTask) -> StudyOutcome:
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
        "code": digest_of([stage_versions.IMPORT, heart().digest]),
    }
    folder = write.Places.of(spec.out, study_id).proposals
    cached_build = _reusable_build(folder, provenance)
    if cached_build is not None:
        lines = read_text(folder / write.REJECTS_NAME).splitlines()
        rejects = [parse_json(line) for line in lines]
        by_id = {names.file(name): name for name in task.files}
        name_of = {line["file"]: by_id.get(line["file"], "") for line in rejects}
        return StudyOutcome(cached_build | {"unchanged": True}, rejects, name_of)
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


def import_without_deadly_files(task: StudyTask) -> StudyOutcome:
    """Import a study again whose process ended: the files that end a process are found, and left out."""
    readings = {image.place: image.reading for image in task.images}
    ways = [(place, None if read is None else read.one_phase) for place, read in sorted(readings.items())]
    lives = spread(_is_decoded, ways, worth=False, lost=lambda _: False)
    deadly = frozenset(place for (place, _), alive in zip(ways, lives, strict=True) if not alive)
    [outcome] = spread(import_or_reuse, [replace(task, unreadable=deadly)], worth=False, lost=_failed)
    return outcome


def _is_decoded(way: tuple[Place, bool | None]) -> bool:
    """Decode a file as the import would, and return True; a file that kills the process returns nothing."""
    place, one_phase = way
    with suppress(RejectedError, OSError):
        decoded(place, one_phase=one_phase)
    return True


def _failed(task: StudyTask) -> StudyOutcome:
    raise RunError(
        f"{task.study_id}: its import was killed, perhaps for lack of memory; free some, and run it again"
    )


def _import_task(task: StudyTask, provenance: dict[str, Any]) -> StudyOutcome:
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


def _write_outcome(task: StudyTask, provenance: dict[str, Any], imported: Imported) -> StudyOutcome:
    name_of: dict[str, str] = {}
    rejects = list(_study_rejects(task, imported, name_of))
    build = write.write_study(
        task.spec.out, task.study_id, task.images, imported,
        names=task.names, provenance=provenance, rejects=rejects, choices=task.choices,
    )  # fmt: skip
    if build["prepare_refuses"] and write.hold_refused(task.spec.out, task.study_id, imported):
        return _write_outcome(task, provenance, imported)
    return StudyOutcome(build, rejects, name_of)


def _reusable_build(folder: Path, provenance: dict[str, Any]) -> dict[str, Any] | None:
    try:
        build: dict[str, Any] = read_json(folder / write.BUILD_NAME)
    except (OSError, ValueError):
        return None
    is_current = all(build.get(name) == value for name, value in provenance.items())
    return build if is_current and write.is_whole(folder, build) else None


def _study_rejects(task: StudyTask, imported: Imported, name_of: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield a line for each frame that was left out, and add its file's name to `name_of`."""
    for image, reason in imported.left_out:
        name = path_below(image.place.name, task.spec.source)
        file = task.names.file(name)
        name_of[file] = name
        detail = imported.details.get((image.place.name, image.frame), "")
        yield write.reject(file, reason, frame=image.frame, detail=detail, study_id=task.study_id)
