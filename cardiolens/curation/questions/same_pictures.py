"""Studies of one draft that show the same pictures, by perceptual hashes (protocol 9, stage 6e)."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.curation.questions.stage_files import Record, Stages, read_lines, write_lines
from cardiolens.study.manifest import MANIFEST_NAME, Study, read_study
from cardiolens.study.same_pixels import HashedFrames, hashes_of, same_studies

Duplicates = Mapping[str, list[str] | None]
"""Of each study, those that show the same pictures; None if its images cannot be read."""


def fill_duplicates(stages: Stages, folders: Iterable[Path]) -> Duplicates:
    """Write into the records of stage 6 which studies of the draft show the same pictures; return them."""
    paths = sorted(stages.out.glob("6-automatic*.jsonl"))
    records_of = {path: read_lines(path) for path in paths}
    drafted = {
        record["study_id"] for records in records_of.values() for record in records if record["checked"]
    }
    duplicates = _duplicates(stages, _studies(folders, drafted))
    for path, records in records_of.items():
        for record in records:
            for state in record["checked"].values():
                state["duplicate"] = duplicates.get(record["study_id"])
        write_lines(path, records)
    return duplicates


def reviewed_whole(line: Record, duplicates: Duplicates) -> Record:
    """Return a line of questions, in full review if another study of the draft shows its pictures."""
    if not duplicates.get(line["study"]):
        return line
    return {**line, "verification": {**line["verification"], "queue": "full"}}


def _studies(folders: Iterable[Path], drafted: set[str]) -> dict[str, Study]:
    paths = (path.parent for folder in folders for path in sorted(folder.glob(f"*/{MANIFEST_NAME}")))
    studies = {study.study_id: study for study in map(read_study, paths)}
    return {name: study for name, study in sorted(studies.items()) if name in drafted}


def _duplicates(stages: Stages, studies: Mapping[str, Study]) -> dict[str, list[str] | None]:
    inputs = [{"study_id": name, "report_id": study.manifest_sha256} for name, study in studies.items()]
    records = stages.run(
        "6-frames", "frames-1", inputs, lambda record: {"frames": _frames(studies[record["study_id"]])}
    )
    read = {record["study_id"]: record["frames"] for record in records}
    hashes = HashedFrames.of(
        [(name, volume, digits) for name, frames in read.items() for volume, digits in frames or ()]
    )
    rivals_of: dict[str, set[str]] = {name: set() for name in read}
    for first, second in same_studies(hashes, hashes):
        rivals_of[first].add(second)
        rivals_of[second].add(first)
    return {name: sorted(rivals_of[name]) if frames is not None else None for name, frames in read.items()}


def _frames(study: Study) -> list[Any] | None:
    """Return the volume and the hash of each frame of a study; None if its images cannot be read."""
    try:
        return [[volume, digits] for _, volume, digits in hashes_of(study)]
    except InputError:
        return None
