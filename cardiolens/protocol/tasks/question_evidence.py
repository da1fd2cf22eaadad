"""Evidence of questions: report quotes and slices that support an answer, and its verification."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.protocol.tasks.questions import Question
from cardiolens.storage import schemas, tables

FINDINGS = "2-findings.*.jsonl"  # stage files of drafting; `evidence` refers to their ids
Quote = dict[str, str]


def evidence_of(questions: Sequence[Question], folder: Path) -> pa.Table:
    """Return table `evidence`, a row for each question with evidence or verification.

    Evidence ids are looked up in the stage files of the folder; an entry that is no known id is a quote.
    """
    supported = [
        question
        for question in questions
        if question.evidence or question.evidence_slices or question.verification
    ]
    quotes = _quotes(folder) if any(question.evidence for question in supported) else {}
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
        for question in supported
    ]
    return tables.from_rows(rows, schemas.EVIDENCE)


def _quotes(folder: Path) -> dict[tuple[str, str], Quote]:
    """Return quotes by (study_id, id)."""
    return {
        (str(record.get("study_id")), str(passage["id"])): {
            "text": str(passage["quote"]),
            "section": str(passage.get("section") or ""),
        }
        for path in sorted(folder.glob(FINDINGS))
        for record in _records(path)
        for passage in record.get("items") or ()
        if isinstance(passage, dict) and {"id", "quote"} <= passage.keys()
    }


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the records of a stage file; none if the file is unreadable, as no score depends on evidence."""
    try:
        records = [parse_json(line) for line in read_text(path).split("\n") if line]
    except (OSError, ValueError):
        return
    yield from (record for record in records if isinstance(record, dict))
