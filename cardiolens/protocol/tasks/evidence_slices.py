"""Evidence slices of questions against the prepared studies: the volumes and slices that they name exist."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from cardiolens.base.errors import InputError
from cardiolens.protocol.tasks.questions import EvidenceSlice, GivenQuestion
from cardiolens.study.structure import StudyStructure, structures


def check_evidence_slices(path: Path, questions: Iterable[GivenQuestion], volumes: pa.Table) -> None:
    """Raise InputError for a slice that a prepared study does not have; it would never count as shown."""
    with_slices = [row for row in questions if row.question.evidence_slices]
    studies = structures(volumes) if with_slices else {}
    for row in with_slices:
        study = studies.get(row.question.study_id)
        for evidence_slice in row.question.evidence_slices if study else ():
            assert study is not None
            if problem := _problem(evidence_slice, study):
                raise InputError(
                    f"{path}:{row.number}: {row.question.qa_id}: evidence_slices: {problem}; correct it, or "
                    "leave it out"
                )


def _problem(evidence_slice: EvidenceSlice, study: StudyStructure) -> str:
    volume = study.volumes.get(evidence_slice.volume_id)
    if volume is None:
        return (
            f"volume_id is {evidence_slice.volume_id!r}; expected a volume of the study: "
            f"{', '.join(study.volumes)}"
        )
    if evidence_slice.slice >= volume.n_slices:
        return (
            f"slice is {evidence_slice.slice}; {volume.volume_id} has slices 0..{volume.n_slices - 1}, "
            "counted from the base"
        )
    if beyond := [phase for phase in evidence_slice.phases if phase >= volume.n_phases]:
        return f"phases has {beyond[0]}; {volume.volume_id} has phases 0..{volume.n_phases - 1}"
    return ""
