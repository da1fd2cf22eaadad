"""Prepare a group of studies into one part of the shards, in one worker."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.study.anatomy import Anatomy, heart
from cardiolens.study.cohort import RULES, Cohort, FileRecord, Stamp, StudyRecord, read_cohort, stamp
from cardiolens.study.displayed import displayed_volumes
from cardiolens.study.manifest import Study, read_study, shown_name
from cardiolens.study.nifti import read_file, sha256
from cardiolens.study.shards import PartWriter, holds_part, part_writer


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one study: a record if the study is in the shards, else an error."""

    name: str  # study_id, or the folder's name if the manifest is unreadable
    record: StudyRecord | None = None
    prepared: bool = False  # False with a record: unchanged hashes, an earlier part has the study
    error: str = ""
    warnings: tuple[str, ...] = ()
    n_bytes: int = 0  # read from disk


def prepare_group(
    store: Path,
    part: str,
    folders: Sequence[Path],
    windows: Windows,
    *,
    strict: bool,
    roots: Sequence[Path] = (),
    anatomy: Anatomy | None = None,
) -> list[Outcome]:
    """Prepare studies one after the other into one part; `strict` stops at the first failure.

    `roots` are folders that symbolic links of studies may lead into; `anatomy` is that of the protocol, by
    default the heart's.
    """
    cohort = current_cohort(store, windows, anatomy)
    outcomes: list[Outcome] = []
    with part_writer(store, part) as writer:
        for folder in folders:
            outcomes.append(_attempt(store, writer, folder, cohort, roots))
            if strict and outcomes[-1].error:
                break
    return outcomes


def current_cohort(store: Path, windows: Windows, anatomy: Anatomy | None = None) -> Cohort:
    """Read the cohort of a store; empty if there is none, or if windows, display rules or anatomy differ."""
    cohort = read_cohort(store)
    recorded = None if anatomy is None or anatomy == heart() else anatomy
    if cohort is None or (cohort.display, cohort.rules, cohort.anatomy) != (windows, RULES, recorded):
        return Cohort(
            rules=RULES,
            window_pct=windows.pct,
            windows=windows.by_name,
            studies={},
            failed={},
            anatomy=recorded,
        )
    return cohort


def _attempt(store: Path, writer: PartWriter, folder: Path, cohort: Cohort, roots: Sequence[Path]) -> Outcome:
    name = shown_name(folder)
    try:
        study = read_study(folder, roots, cohort.organ)
        name = study.study_id
        stamps = _stamps(study)  # taken before reading: the next run notices a change during reading
        record = cohort.studies.get(name)
        if record is not None and _may_be_reused(store, study, record):
            hashes, n_bytes = _hashes(study)
            if hashes == {path: file.sha256 for path, file in record.files.items()}:
                notes = {"warnings": record.warnings, "found": record.found}
                again = _record(study, record.part, stamps, hashes).model_copy(update=notes)
                return Outcome(name, again, n_bytes=n_bytes)
        return _displayed(writer, study, stamps, cohort.display)
    except InputError as error:
        writer.end_study(keep=False)
        return Outcome(name, error=str(error))


def _displayed(writer: PartWriter, study: Study, stamps: dict[str, Stamp], windows: Windows) -> Outcome:
    hashes: dict[str, str] = {}
    warnings: list[str] = []
    findings: list[str] = []
    n_bytes = 0
    for volume in displayed_volumes(study, windows):
        writer.add(volume.row, volume.frames)
        hashes |= volume.hashes
        warnings += volume.warnings
        findings += volume.found
        n_bytes += volume.n_bytes
    writer.end_study(keep=True)
    notes = {"warnings": tuple(warnings), "found": tuple(findings)}
    record = _record(study, writer.part, stamps, hashes).model_copy(update=notes)
    return Outcome(study.study_id, record, prepared=True, warnings=tuple(warnings), n_bytes=n_bytes)


def _may_be_reused(store: Path, study: Study, record: StudyRecord) -> bool:
    return record.manifest_sha256 == study.manifest_sha256 and holds_part(store, record)


def _stamps(study: Study) -> dict[str, Stamp]:
    stamps = {path: stamp(study.folder / path) for path in study.files()}
    return {path: value for path, value in stamps.items() if value is not None}


def _hashes(study: Study) -> tuple[dict[str, str], int]:
    hashes, n_bytes = {}, 0
    for path in study.files():
        if (study.folder / path).is_file():
            stored = read_file(study.folder / path)
            hashes[path] = sha256(stored)
            n_bytes += len(stored)
    return hashes, n_bytes


def _record(study: Study, part: str, stamps: dict[str, Stamp], hashes: dict[str, str]) -> StudyRecord:
    files = {path: FileRecord(stamp=stamps[path], sha256=hashes[path]) for path in hashes}
    return StudyRecord(
        part=part,
        manifest_sha256=study.manifest_sha256,
        files=files,
        subgroups=study.manifest.subgroups,
    )


def by_pixels(studies: Sequence[Study], target: int) -> Iterator[list[Study]]:
    """Split studies, in order, into groups of at most `target` pixels and at least one study."""
    group: list[Study] = []
    filled = 0
    for study in studies:
        n_pixels = study.n_pixels
        if group and filled + n_pixels > target:
            yield group
            group, filled = [], 0
        group.append(study)
        filled += n_pixels
    if group:
        yield group
