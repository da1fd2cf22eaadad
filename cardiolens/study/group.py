"""Prepare a group of studies into one part of the shards, in one worker."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cardiolens.base import stage_versions
from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.study.anatomy import Anatomy, heart
from cardiolens.study.cohort import Cohort, StudyRecord, read_cohort, state_of
from cardiolens.study.displayed import displayed_volumes
from cardiolens.study.manifest import Study, read_study, shown_name
from cardiolens.study.shards import PartWriter, part_writer


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one study: a record if the study is in the shards, else an error."""

    name: str  # study_id, or the folder's name if the manifest is unreadable
    record: StudyRecord | None = None
    error: str = ""
    n_bytes: int = 0  # read from disk


def prepare_group(
    store: Path,
    part: str,
    folders: Sequence[Path],
    windows: Windows,
    *,
    roots: Sequence[Path] = (),
    anatomy: Anatomy | None = None,
) -> list[Outcome]:
    """Prepare studies one after the other into one part.

    `roots` are folders that symbolic links of studies may lead into; `anatomy` is that of the protocol, by
    default the heart's.
    """
    with part_writer(store, part) as writer:
        return [_attempt(writer, folder, windows, roots, anatomy) for folder in folders]


def current_cohort(store: Path, windows: Windows, anatomy: Anatomy | None = None) -> Cohort:
    """Read the cohort of a store; empty if there is none, or if windows, version or anatomy differ."""
    cohort = read_cohort(store)
    new = Cohort(
        version=stage_versions.PREPARED,
        window_pct=windows.pct,
        windows=windows.by_name,
        studies={},
        failed={},
        anatomy=None if anatomy == heart() else anatomy,
    )
    facts = [(each.display, each.version, each.anatomy) for each in (cohort, new) if each is not None]
    return cohort if cohort is not None and facts[0] == facts[1] else new


def _attempt(
    writer: PartWriter, folder: Path, windows: Windows, roots: Sequence[Path], anatomy: Anatomy | None
) -> Outcome:
    name = shown_name(folder)
    try:
        study = read_study(folder, roots, anatomy)
        name, state = study.study_id, state_of(study)  # the next run notices a change during reading
        warnings: list[str] = []
        found: list[str] = []
        n_bytes = 0
        for volume in displayed_volumes(study, windows):
            writer.add(volume.row, volume.frames)
            warnings += volume.warnings
            found += volume.found
            n_bytes += volume.n_bytes
        writer.end_study(keep=True)
    except InputError as error:
        writer.end_study(keep=False)
        return Outcome(name, error=str(error))
    record = StudyRecord(
        part=writer.part,
        state=state,
        subgroups=study.manifest.subgroups,
        warnings=tuple(warnings),
        found=tuple(found),
    )
    return Outcome(name, record, n_bytes=n_bytes)


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
