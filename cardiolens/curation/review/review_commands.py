"""Actions of the `review` command on questions: `serve` the page, `export` the results.

The results are verified, rejected and open questions with agreement by batch, and what people read.
"""

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import GivenPath, Spec, describe
from cardiolens.config.command_words import Listed
from cardiolens.curation.questions.stage_files import read_lines, write_lines
from cardiolens.curation.review.agreement import (
    Agreement,
    Agreements,
    agreements,
    answer_of,
    as_record,
    ceiling,
    lines_of,
    people_of,
)
from cardiolens.curation.review.desk import Blinding, Desk, serve_desk
from cardiolens.curation.review.people import read_people
from cardiolens.curation.review.queue import (
    NAME,
    Key,
    Ledger,
    Line,
    Outcome,
    Queue,
    Reviews,
    outcomes_of,
    read_ledger,
)
from cardiolens.curation.review.review_items import Item, read_items
from cardiolens.curation.review.review_pictures import Pictures
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.question_evidence import FINDINGS

CEILING = "ceiling.jsonl"
SOURCES = "review-{}.json"  # by mode
PORT = 8431
STAGE = 8
_SCHEMAS = {"batches": "batch-1", "subtasks": "subtask-agreement-1", "marks": "mark-agreement-1"}
QuestionMode = Literal["verify", "read"]
Record = dict[str, Any]


class Serve(Spec):
    """Options of `serve`."""

    questions: GivenPath
    studies: GivenPath
    out: GivenPath
    mode: QuestionMode
    readers: Annotated[tuple[str, ...], Listed] = ()  # pseudonyms of those who get a link
    third: str | None = None  # who decides where two differ
    port: int = Field(PORT, ge=0, le=65535)
    protocol: str = "openprotocol-1"


class Export(Spec):
    """Options of `export`."""

    out: GivenPath


class Sources(Spec):
    """Inputs of a review, stored beside the ledger for `export`."""

    schema_: Literal["review-sources-1"] = Field(alias="schema")
    questions: GivenPath
    studies: GivenPath
    protocol: str


def serve(options: Serve) -> int:
    """Serve the page until interrupted."""
    items = read_items(options.questions, options.studies, load_catalogue(options.protocol), options.mode)
    disk.make_folder(options.out)
    people = read_people(options.out, options.readers, options.third)
    _keep_sources(options)
    blinding = Blinding(people.key) if options.mode == "read" else None
    ordered = items.items if blinding is None else blinding.in_order(items.items)
    with closing(Ledger(options.out / NAME)) as ledger:
        queue = Queue(ordered, ledger, options.mode)
        n_batches = len({item.batch for item in ordered})
        say(f"mode={options.mode}: {len(ordered)} questions, {n_batches} batches")
        for reason, count in items.left_out.items():
            say(f"left out: {count} ({reason})")
        say(f"decisions: {options.out / NAME}")
        serve_desk(Desk(queue, Pictures(items.studies), blinding), people, options.port)
    return 0


def _keep_sources(options: Serve) -> None:
    """Write the inputs of the review; InputError if `out` holds a review of other inputs."""
    if options.mode == "verify" and options.questions.resolve().parent == options.out.resolve():
        raise InputError(f"out={options.out}: its export would replace {options.questions}; name another out")
    path = options.out / SOURCES.format(options.mode)
    sources = Sources(
        schema="review-sources-1",
        questions=options.questions.resolve(),
        studies=options.studies.resolve(),
        protocol=options.protocol,
    )
    if path.exists() and _sources(options.out, options.mode) != sources:
        raise InputError(f"out={options.out}: holds a review of other questions or studies; name another out")
    disk.write_text(path, json.dumps(sources.model_dump(mode="json", by_alias=True), indent=1) + "\n")


def _sources(out: Path, mode: QuestionMode) -> Sources:
    path = out / SOURCES.format(mode)
    try:
        return Sources.model_validate(read_json(path))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; name the out that a page of review had") from None
    except (OSError, ValueError) as error:
        why = describe(error) if isinstance(error, ValidationError) else str(error)
        raise InputError(f"{path}: {why}; serve the page again with another out") from None


def export(options: Export) -> int:
    """Write the results of the review; return 0 if a question is verified or was read, else 1."""
    out = options.out
    if not (out / NAME).is_file():
        raise InputError(f"out={out}: holds no review; name the out that a page of review had")
    reviews = read_ledger(out / NAME)
    if not any(decided for mode in reviews.decided.values() for decided in mode.values()):
        raise RunError(f"out={out}: nobody has decided on anything yet, so nothing was written")
    n_lines = _export_verified(out, reviews) if any(reviews.decided["verify"].values()) else 0
    n_lines += _export_readings(out, reviews) if any(reviews.decided["read"].values()) else 0
    return 0 if n_lines else 1


def _export_verified(out: Path, reviews: Reviews) -> int:
    items = _items(out, "verify")
    result = exported(items, reviews)
    write(out, result)
    keep_quotes(_sources(out, "verify").questions.parent, out)
    for row in (row for rows in result.agreements for row in rows):
        say(row.line())
    counts = f"{len(result.verified)} verified, {len(result.rejects)} rejected, {len(result.open)} open"
    say(f"{len(items)} questions: {counts}: {out}")
    return len(result.verified)


def _export_readings(out: Path, reviews: Reviews) -> int:
    items = _items(out, "read")
    persons, rows = people_of(items, reviews), ceiling(items, reviews)
    for person in persons:
        read = reviews.of_reader(person.reader, "read")
        lines = [
            {"qa_id": key[0], "item": key[1], "answer": list(read[key].answer), "seconds": read[key].seconds}
            for key in items
            if key in read
        ]
        write_lines(out / "readings" / f"{person.reader}.jsonl", lines)
    write_lines(out / CEILING, lines_of(persons, rows))
    for line in (*(person.line() for person in persons), *(row.line() for row in rows)):
        say(line)
    say(f"answers: {out / 'readings'}")
    return sum(person.n_read for person in persons)


def _items(out: Path, mode: QuestionMode) -> dict[Key, Item]:
    sources = _sources(out, mode)
    listed = read_items(sources.questions, sources.studies, load_catalogue(sources.protocol), mode)
    return {item.key: item for item in listed.items}


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
    by_place = {(item.study, item.subtask.id): item for item in items.values()}
    for item in items.values():
        own, batch = outcomes[item.digest], by_name[item.batch]
        parent = by_place.get((item.study, item.subtask.parent or ""))
        of_parent = None if parent is None else outcomes[parent.digest].final
        if own.final is None:
            result.open.append(_unsettled(item, own.state, batch))
        elif reason := _reason(own.final) or _parent_reason(item, parent, of_parent):
            result.rejects.append(_reject(item, own, reason))
        elif batch.decision not in ("pass", "small"):
            result.open.append(_unsettled(item, f"batch_{batch.decision}", batch))
        elif parent is not None and of_parent is None:
            result.open.append(_unsettled(item, "parent_open", batch))
        else:
            result.verified.append(_verified(item, own, own.final, batch))
    return result


def _reason(final: Line) -> str:
    return {"reject": str(final.reason), "cannot_tell": "cannot_tell"}.get(str(final.verdict), "")


def _parent_reason(item: Item, parent: Item | None, final: Line | None) -> str:
    """Return why the final decision on the parent question closes a question, or an empty string."""
    if parent is None or final is None:
        return ""
    if _reason(final):
        return "parent_rejected"
    is_opened = set(answer_of(parent, final)) & set(item.subtask.parent_answers)
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
        "study_id": item.study,
        "qa_id": item.qa_id,
        "subtask": item.subtask.id,
        "adjudicated": outcome.adjudicated,
    }


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
