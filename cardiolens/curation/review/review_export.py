"""Results of a review: verified, rejected and open questions, agreement by batch, and readings."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiolens.curation.questions.stage_files import read_lines, write_lines
from cardiolens.curation.review.agreement import Agreement, agreements, agreements_by_mark, as_record
from cardiolens.curation.review.ledger import Line, Reviews
from cardiolens.curation.review.queue import Outcome, outcome
from cardiolens.curation.review.review_items import Item
from cardiolens.protocol.tasks.catalogue import Subtask
from cardiolens.protocol.tasks.question_evidence import FINDINGS

STAGE = 8
Record = dict[str, Any]

CANNOT_TELL = "cannot_tell"
PARENT_SAYS_OTHERWISE = "parent_says_otherwise"  # the parent's corrected answer does not open the question
PARENT_REJECTED = "parent_rejected"


@dataclass(frozen=True)
class Exported:
    """Lines of the three question files, and agreement by batch and by subtask."""

    verified: list[Record]
    rejects: list[Record]
    open: list[Record]
    batches: list[Agreement]
    subtasks: list[Agreement]
    marks: list[Agreement]  # by who drafted the questions


def exported(items: Mapping[tuple[str, str], Item], reviews: Reviews) -> Exported:
    """Sort the items of a verification into exactly one of verified, rejected and open."""
    outcomes = {item.digest: outcome(reviews.of("verify", key)) for key, item in items.items()}
    batches, subtasks = agreements(items.values(), lambda item: outcomes[item.digest])
    marks = agreements_by_mark(items.values(), lambda item: outcomes[item.digest])
    by_name = {batch.name: batch for batch in batches}
    sorted_items = Exported([], [], [], batches, subtasks, marks)
    finals = {
        (item.question.study_id, item.subtask.id): (item, outcomes[item.digest]) for item in items.values()
    }
    for item in items.values():
        own, batch = outcomes[item.digest], by_name[item.batch]
        if own.final is None:
            sorted_items.open.append(_unsettled(item, own.state, batch))
        elif reason := _reason(own.final) or _parent_reason(item.subtask, item, finals):
            sorted_items.rejects.append(_reject(item, own, reason))
        elif batch.decision not in ("pass", "small"):
            sorted_items.open.append(_unsettled(item, f"batch_{batch.decision}", batch))
        elif _parent_open(item, finals):
            sorted_items.open.append(_unsettled(item, "parent_open", batch))
        else:
            sorted_items.verified.append(_verified(item, own, own.final, batch))
    return sorted_items


Finals = Mapping[tuple[str, str], tuple[Item, Outcome]]


def _reason(final: Line) -> str:
    return {"reject": str(final.reason), "cannot_tell": CANNOT_TELL}.get(str(final.verdict), "")


def _parent_reason(subtask: Subtask, item: Item, finals: Finals) -> str:
    """Return why the final decision on the parent question closes a question, or an empty string."""
    parent = finals.get((item.question.study_id, subtask.parent or ""))
    if parent is None or parent[1].final is None:
        return ""
    if _reason(parent[1].final):
        return PARENT_REJECTED
    return (
        ""
        if set(answer_of(parent[0], parent[1].final)) & set(subtask.parent_answers)
        else PARENT_SAYS_OTHERWISE
    )


def _parent_open(item: Item, finals: Finals) -> bool:
    parent = finals.get((item.question.study_id, item.subtask.parent or ""))
    return parent is not None and parent[1].final is None


def answer_of(item: Item, final: Line) -> tuple[str, ...]:
    """Return the answer of the final decision."""
    return item.proposal if final.verdict == "accept" else final.answer


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


def readings(items: Mapping[tuple[str, str], Item], reviews: Reviews) -> dict[str, list[Record]]:
    """Return each person's answers and seconds by question, in the order of the items."""
    readings_of: dict[str, list[Record]] = {}
    for key, item in items.items():
        for reader, line in reviews.of("read", key).items():
            record = {
                "qa_id": item.qa_id,
                "item": item.digest,
                "answer": list(line.answer),
                "seconds": line.seconds,
            }
            readings_of.setdefault(reader, []).append(record)
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
    rows = [{"schema": "batch-1", **as_record(row)} for row in result.batches]
    rows += [{"schema": "subtask-agreement-1", **as_record(row)} for row in result.subtasks]
    rows += [{"schema": "mark-agreement-1", **as_record(row)} for row in result.marks]
    write_lines(out / "batches.jsonl", rows)
