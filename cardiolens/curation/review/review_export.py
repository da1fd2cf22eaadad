"""Results of a review: verified, rejected and open questions, agreement by batch, and readings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cardiolens.curation.questions.stage_files import read_lines, write_lines
from cardiolens.curation.review.agreement import Agreement, Agreements, agreements, answer_of, as_record
from cardiolens.curation.review.ledger import Key, Line, Reviews
from cardiolens.curation.review.queue import Outcome, outcomes_of
from cardiolens.curation.review.review_items import Item
from cardiolens.protocol.tasks.question_evidence import FINDINGS

STAGE = 8
_SCHEMAS = {"batches": "batch-1", "subtasks": "subtask-agreement-1", "marks": "mark-agreement-1"}
Record = dict[str, Any]
Finals = Mapping[tuple[str, str], tuple[Item, Outcome]]  # by study and subtask


@dataclass(frozen=True)
class Exported:
    """Lines of the three question files, and agreement."""

    agreements: Agreements
    verified: list[Record] = field(default_factory=list)
    rejects: list[Record] = field(default_factory=list)
    open: list[Record] = field(default_factory=list)


def exported(items: Mapping[Key, Item], reviews: Reviews) -> Exported:
    """Sort the items of a verification into exactly one of verified, rejected and open."""
    outcomes = outcomes_of(items.values(), reviews)
    result = Exported(agreements(items.values(), outcomes))
    by_name = {batch.name: batch for batch in result.agreements.batches}
    finals = {
        (item.question.study_id, item.subtask.id): (item, outcomes[item.digest]) for item in items.values()
    }
    for item in items.values():
        own, batch = outcomes[item.digest], by_name[item.batch]
        if own.final is None:
            result.open.append(_unsettled(item, own.state, batch))
        elif reason := _reason(own.final) or _parent_reason(item, finals):
            result.rejects.append(_reject(item, own, reason))
        elif batch.decision not in ("pass", "small"):
            result.open.append(_unsettled(item, f"batch_{batch.decision}", batch))
        elif (parent := _parent(item, finals)) is not None and parent[1].final is None:
            result.open.append(_unsettled(item, "parent_open", batch))
        else:
            result.verified.append(_verified(item, own, own.final, batch))
    return result


def _reason(final: Line) -> str:
    return {"reject": str(final.reason), "cannot_tell": "cannot_tell"}.get(str(final.verdict), "")


def _parent(item: Item, finals: Finals) -> tuple[Item, Outcome] | None:
    return finals.get((item.question.study_id, item.subtask.parent or ""))


def _parent_reason(item: Item, finals: Finals) -> str:
    """Return why the final decision on the parent question closes a question, or an empty string."""
    parent = _parent(item, finals)
    if parent is None or (final := parent[1].final) is None:
        return ""
    if _reason(final):
        return "parent_rejected"
    is_opened = set(answer_of(parent[0], final)) & set(item.subtask.parent_answers)
    return "" if is_opened else "parent_says_otherwise"


def _verified(item: Item, outcome: Outcome, final: Line, batch: Agreement) -> Record:
    kappa = as_record(batch)["kappa"]["value"]
    verification = {
        **item.question.verification,
        "status": "verified",
        "stage": STAGE,
        "verdict": final.verdict,
        "readers": len(outcome.firsts),
        "adjudicated": outcome.adjudicated,
        "by": [line.reader for line in outcome.firsts] + [final.reader] * outcome.adjudicated,
        "at": max(line.at for line in (*outcome.firsts, final)),
        "kappa_batch": batch.name,
        "batch_decision": batch.decision,
        "kappa": None if kappa is None else round(kappa, 4),
    }
    return {**item.record, "answer": list(answer_of(item, final)), "verification": verification}


def _unsettled(item: Item, why: str, batch: Agreement) -> Record:
    verification = {**item.question.verification, "review": why, "kappa_batch": batch.name}
    return {**item.record, "verification": verification}


def _reject(item: Item, outcome: Outcome, reason: str) -> Record:
    return {
        "stage": 7,
        "reason": reason,
        "study_id": item.question.study_id,
        "qa_id": item.qa_id,
        "subtask": item.subtask.id,
        "adjudicated": outcome.adjudicated,
    }


def readings(items: Mapping[Key, Item], reviews: Reviews) -> dict[str, list[Record]]:
    """Return each person's answers and seconds by question, in the order of the items."""
    readings_of: dict[str, list[Record]] = {}
    for key, item in items.items():
        for reader, line in reviews.of("read", key).items():
            record = {"qa_id": item.qa_id, "item": item.digest, "answer": list(line.answer)}
            readings_of.setdefault(reader, []).append(record | {"seconds": line.seconds})
    return readings_of


def keep_quotes(drafts: Path, out: Path) -> None:
    """Copy the findings from the folder of the drafts to `out`: verified questions cite their ids."""
    for path in sorted(drafts.glob(FINDINGS)):
        write_lines(out / path.name, read_lines(path))


def write(out: Path, result: Exported) -> None:
    """Write the files of a verification, each whole or not at all."""
    write_lines(out / "questions.jsonl", result.verified)
    write_lines(out / "rejects.jsonl", result.rejects)
    write_lines(out / "open.jsonl", result.open)
    groups = zip(_SCHEMAS.values(), result.agreements, strict=True)
    write_lines(
        out / "batches.jsonl",
        [{"schema": schema, **as_record(row)} for schema, rows in groups for row in rows],
    )
