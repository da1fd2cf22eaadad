"""Actions of the `review` command on questions: `serve` the page, `export` the results."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import GivenPath, Spec, describe
from cardiolens.config.command_words import Listed, read_words
from cardiolens.curation.questions.stage_files import write_lines
from cardiolens.curation.review.agreement import FEWEST, Agreement, in_words
from cardiolens.curation.review.blinding import Blinding
from cardiolens.curation.review.ceiling import ceiling, lines_of, people_of, told_between, told_person
from cardiolens.curation.review.desk import Desk
from cardiolens.curation.review.ledger import NAME, Ledger, read_ledger
from cardiolens.curation.review.people import read_people
from cardiolens.curation.review.queue import Queue
from cardiolens.curation.review.review_export import exported, keep_quotes, readings, write
from cardiolens.curation.review.review_items import Item, Items, Mode, read_items
from cardiolens.curation.review.review_pictures import Pictures
from cardiolens.curation.review.review_server import review_server
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.score.statistics.hypothesis_tests import wilson

CEILING = "ceiling.jsonl"
SOURCES = "review-{}.json"  # by mode
PORT = 8431


class Serve(Spec):
    """Options of `serve`."""

    questions: GivenPath
    studies: GivenPath
    out: GivenPath
    mode: Mode
    readers: Annotated[tuple[str, ...], Listed] = ()  # pseudonyms of those who get a link
    third: str | None = None  # who decides where two differ
    port: int = Field(PORT, ge=0, le=65535)
    protocol: str = "openprotocol-1"


class Export(Spec):
    """Options of `export`."""

    out: GivenPath


class Sources(Spec):
    """Inputs of a review, stored beside the ledger for `export`."""

    schema_: Literal["review-sources-1"] = Field("review-sources-1", alias="schema")
    questions: GivenPath
    studies: GivenPath
    protocol: str


def serve(words: Sequence[str]) -> int:
    """Serve the page until interrupted."""
    options = read_words(Serve, words)
    items = read_items(options.questions, options.studies, load_catalogue(options.protocol), options.mode)
    _make_writable(options.out)
    people = read_people(options.out, options.readers, options.third)
    _keep_sources(options)
    ledger = Ledger(options.out / NAME)
    try:
        blinding = Blinding(people.key) if options.mode == "read" else None
        ordered = items.items if blinding is None else blinding.in_order(items.items)
        desk = Desk(items, Queue.of(ordered, ledger, options.mode), Pictures(items.studies), blinding)
        with review_server(desk, people, options.port) as server:
            _report(items, options)
            for token, person in people.by_token.items():
                say(f"{person.name} ({person.role}): {server.address}{token}/")
            say("pass on each link to its person alone; they lead to this machine only; Ctrl-C ends the page")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                return 0
    finally:
        ledger.close()
    return 0


def _make_writable(folder: Path) -> None:
    """Make a folder that is to be written into; InputError if it cannot be one, or not for this user."""
    try:
        disk.make_folder(folder)
    except RunError as error:
        why = error.__cause__.strerror if isinstance(error.__cause__, OSError) else error
        raise InputError(
            f"out={folder}: is no folder and cannot be made one ({why}); name a folder of yours"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"out={folder}: cannot be written into; name a folder of yours, or change its mode")


def _report(items: Items, options: Serve) -> None:
    say(f"mode={options.mode}: {len(items.items)} questions, {len(items.batches)} batches")
    for reason, count in items.left_out.items():
        say(f"left out: {count} ({reason})")
    if options.mode == "verify" and len(items.items) < FEWEST:
        most = wilson(len(items.items), len(items.items)).low
        say(
            f"fewer than {FEWEST} questions are a small batch: if all are accepted, they show that "
            f"{most:.0%} or more would be"
        )
    say(f"decisions: {options.out / NAME}")


def _keep_sources(options: Serve) -> None:
    """Write the inputs of the review; InputError if `out` holds a review of other inputs."""
    if options.mode == "verify" and options.questions.resolve().parent == options.out.resolve():
        raise InputError(f"out={options.out}: its export would replace {options.questions}; name another out")
    path = options.out / SOURCES.format(options.mode)
    tree = {
        "schema": "review-sources-1",
        "questions": str(options.questions.resolve()),
        "studies": str(options.studies.resolve()),
        "protocol": options.protocol,
    }
    if path.exists() and _sources(options.out, options.mode).model_dump(mode="json", by_alias=True) != tree:
        raise InputError(f"out={options.out}: holds a review of other questions or studies; name another out")
    disk.write_text(path, json.dumps(tree, indent=1) + "\n")


def _sources(out: Path, mode: Mode) -> Sources:
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
    n_lines = 0
    if any(reviews.decided["verify"].values()):
        items = _items(out, "verify")
        result = exported(items, reviews)
        write(out, result)
        keep_quotes(_sources(out, "verify").questions.parent, out)
        for row in [*result.batches, *result.subtasks, *result.marks]:
            say(_line(row))
        counts = f"{len(result.verified)} verified, {len(result.rejects)} rejected, {len(result.open)} open"
        say(f"{len(items)} questions: {counts}: {out}")
        n_lines += len(result.verified)
    if any(reviews.decided["read"].values()):
        items = _items(out, "read")
        for reader, lines in readings(items, reviews).items():
            write_lines(out / "readings" / f"{reader}.jsonl", lines)
            say(f"{reader}: {len(lines)} of {len(items)} questions read: {out / 'readings'}")
            n_lines += len(lines)
        persons, rows = people_of(items, reviews), ceiling(items, reviews)
        write_lines(out / CEILING, lines_of(persons, rows))
        for words_of_row in [*map(told_person, persons), *map(told_between, rows)]:
            say(words_of_row)
    return 0 if n_lines else 1


def _items(out: Path, mode: Mode) -> dict[tuple[str, str], Item]:
    sources = _sources(out, mode)
    listed = read_items(sources.questions, sources.studies, load_catalogue(sources.protocol), mode)
    return {(item.qa_id, item.digest): item for item in listed.items}


def _line(row: Agreement) -> str:
    numbers = f"{row.n_settled}/{row.n_items} settled, {row.n_pairs} pairs, {row.n_patients} patients"
    agreed = f"kappa {in_words(row.kappa)}, AC1 {in_words(row.ac1)}, accepted {in_words(row.accepted)}"
    why = f" ({'; '.join(row.why)})" if row.why else ""
    return f"{row.name}: {numbers}; {agreed}: {row.decision}{why}"
