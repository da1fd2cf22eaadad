"""Evidence of questions: report quotes and slices that support an answer, and its verification."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.protocol.tasks.questions import EvidenceSlice, GivenQuestion, Question
from cardiolens.storage import schemas, tables
from cardiolens.study.structure import StudyStructure, structures


def check_evidence_slices(path: Path, questions: Iterable[GivenQuestion], volumes: pa.Table) -> None:
    """Raise InputError for a slice that a prepared study does not have; it would never count as shown."""
    with_slices = [row for row in questions if row.question.evidence_slices]
    studies = structures(volumes) if with_slices else {}
    for row in with_slices:
        study = studies.get(row.question.study_id)
        problems = [] if study is None else [_problem(one, study) for one in row.question.evidence_slices]
        for problem in filter(None, problems):
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


FINDINGS = "2-findings.*.jsonl"  # stage files of drafting; `evidence` refers to their ids
Quote = dict[str, str]


def evidence_of(questions: Sequence[Question], folder: Path) -> pa.Table:
    """Return table `evidence`, a row for each question with evidence or verification.

    Evidence ids are looked up in the stage files of the folder; an entry that is no known id is a quote.
    """
    has_ids = any(question.evidence for question in questions)
    quotes = dict(_quotes(folder)) if has_ids else {}
    rows: list[dict[str, object]] = [
        {
            "qa_id": question.qa_id,
            "study_id": question.study_id,
            "origin": question.origin,
            "quotes": [
                quotes.get((question.study_id, name), {"text": name, "section": ""})
                for name in question.evidence
            ],
            "verification": json.dumps(question.verification, sort_keys=True),
            "slices": [evidence_slice.model_dump() for evidence_slice in question.evidence_slices],
        }
        for question in questions
        if question.evidence or question.evidence_slices or question.verification
    ]
    return tables.from_rows(rows, schemas.EVIDENCE)


def _quotes(folder: Path) -> Iterator[tuple[tuple[str, str], Quote]]:
    """Yield quotes by (study_id, id); none of an unreadable file, as no score depends on evidence."""
    for path in sorted(folder.glob(FINDINGS)):
        try:
            records = [parse_json(line) for line in read_text(path).split("\n") if line]
        except (OSError, ValueError):
            continue
        for record in records:
            for passage in (record.get("items") or ()) if isinstance(record, dict) else ():
                if isinstance(passage, dict) and {"id", "quote"} <= passage.keys():
                    quote = {"text": str(passage["quote"]), "section": str(passage.get("section") or "")}
                    yield (str(record.get("study_id")), str(passage["id"])), quote
