"""Actions of the `review` command on questions: `serve` the page, `export` the results."""

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import GivenPath, Spec, describe
from cardiolens.config.command_words import Listed, read_words
from cardiolens.curation.questions.stage_files import write_lines
from cardiolens.curation.review.agreement import Agreement, in_words
from cardiolens.curation.review.ceiling import ceiling, lines_of, people_of
from cardiolens.curation.review.desk import Blinding, Desk
from cardiolens.curation.review.ledger import NAME, Key, Ledger, Reviews, read_ledger
from cardiolens.curation.review.people import read_people
from cardiolens.curation.review.queue import Queue
from cardiolens.curation.review.review_export import exported, keep_quotes, readings, write
from cardiolens.curation.review.review_items import Item, read_items
from cardiolens.curation.review.review_pictures import Pictures
from cardiolens.curation.review.review_server import serve_desk
from cardiolens.protocol.tasks.catalogue import load_catalogue

CEILING = "ceiling.jsonl"
SOURCES = "review-{}.json"  # by mode
PORT = 8431
QuestionMode = Literal["verify", "read"]


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


def serve(words: Sequence[str]) -> int:
    """Serve the page until interrupted."""
    options = read_words(Serve, words)
    items = read_items(options.questions, options.studies, load_catalogue(options.protocol), options.mode)
    disk.make_folder(options.out)
    people = read_people(options.out, options.readers, options.third)
    _keep_sources(options)
    blinding = Blinding(people.key) if options.mode == "read" else None
    ordered = items.items if blinding is None else blinding.in_order(items.items)
    with closing(Ledger(options.out / NAME)) as ledger:
        queue = Queue.of(ordered, ledger, options.mode)
        n_batches = len({item.batch for item in ordered})
        say(f"mode={options.mode}: {len(ordered)} questions, {n_batches} batches")
        for reason, count in items.left_out.items():
            say(f"left out: {count} ({reason})")
        say(f"decisions: {options.out / NAME}")
        serve_desk(Desk(items, queue, Pictures(items.studies), blinding), people, options.port)
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


def export(words: Sequence[str]) -> int:
    """Write the results of the review; return 0 if a question is verified or was read, else 1."""
    out = read_words(Export, words).out
    if not (out / NAME).is_file():
        raise InputError(f"out={out}: holds no review; name the out that a page of review had")
    reviews = read_ledger(out / NAME)
    n_lines = _export_verified(out, reviews) if any(reviews.decided["verify"].values()) else 0
    n_lines += _export_readings(out, reviews) if any(reviews.decided["read"].values()) else 0
    return 0 if n_lines else 1


def _export_verified(out: Path, reviews: Reviews) -> int:
    items = _items(out, "verify")
    result = exported(items, reviews)
    write(out, result)
    keep_quotes(_sources(out, "verify").questions.parent, out)
    for row in (row for rows in result.agreements for row in rows):
        say(_line(row))
    counts = f"{len(result.verified)} verified, {len(result.rejects)} rejected, {len(result.open)} open"
    say(f"{len(items)} questions: {counts}: {out}")
    return len(result.verified)


def _export_readings(out: Path, reviews: Reviews) -> int:
    items, n_lines = _items(out, "read"), 0
    for reader, lines in readings(items, reviews).items():
        write_lines(out / "readings" / f"{reader}.jsonl", lines)
        say(f"{reader}: {len(lines)} of {len(items)} questions read: {out / 'readings'}")
        n_lines += len(lines)
    persons, rows = people_of(items, reviews), ceiling(items, reviews)
    write_lines(out / CEILING, lines_of(persons, rows))
    for line in (*(person.line() for person in persons), *(row.line() for row in rows)):
        say(line)
    return n_lines


def _items(out: Path, mode: QuestionMode) -> dict[Key, Item]:
    sources = _sources(out, mode)
    listed = read_items(sources.questions, sources.studies, load_catalogue(sources.protocol), mode)
    return {(item.qa_id, item.digest): item for item in listed.items}


def _line(row: Agreement) -> str:
    numbers = f"{row.n_settled}/{row.n_items} settled, {row.n_pairs} pairs, {row.n_patients} patients"
    agreed = f"kappa {in_words(row.kappa)}, AC1 {in_words(row.ac1)}, accepted {in_words(row.accepted)}"
    why = f" ({'; '.join(row.why)})" if row.why else ""
    return f"{row.name}: {numbers}; {agreed}: {row.decision}{why}"
