"""Check that questions and prepared studies agree on the patients."""

import logging
from collections import Counter
from pathlib import Path

import pyarrow as pa

from cardiolens.base.errors import InputError

log = logging.getLogger(__name__)


def with_patients(questions: pa.Table, volumes: pa.Table) -> pa.Table:
    """Return the questions, with a missing patient filled in from the study."""
    patients = _patients(volumes)
    rows = questions.select(["study_id", "patient_id"]).to_pylist()
    filled = [row["patient_id"] or patients.get(row["study_id"]) for row in rows]
    at = questions.schema.get_field_index("patient_id")
    return questions.set_column(at, questions.schema.field(at), pa.array(filled, pa.string()))


def _patients(volumes: pa.Table) -> dict[str, str]:
    """Return the patient of each prepared study."""
    return dict(zip(volumes["study_id"].to_pylist(), volumes["patient_id"].to_pylist(), strict=True))


def check_patients(path: Path, questions: pa.Table, volumes: pa.Table) -> None:
    """Raise InputError if the patient of a question is not the patient of its study; name no patient.

    Questions on studies that are not prepared are not asked; a warning counts them.
    """
    patients = _patients(volumes)
    absent: Counter[str] = Counter()
    for row in questions.select(["qa_id", "study_id", "patient_id"]).to_pylist():
        study = row["study_id"]
        if study not in patients:
            absent[study] += 1
        elif patients[study] != row["patient_id"]:
            raise InputError(
                f"{path}: {row['qa_id']}: its patient_id is not that of study {study} in study.json, and "
                "intervals and controls go by patient; correct the one that is wrong"
            )
    if absent:
        log.warning(
            "%s: questions not asked: %d, as studies are not prepared: %d, e.g. %s",
            path,
            absent.total(),
            len(absent),
            next(iter(absent)),
        )
