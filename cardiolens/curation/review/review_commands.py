"""Actions of the `review` command: `add` an account, `serve` the page, `export` the results."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import GivenPath, Spec, describe
from cardiolens.config.command_words import read_words
from cardiolens.curation.questions.stage_files import write_lines
from cardiolens.curation.review.accounts import Door, Role, add_account, read_accounts
from cardiolens.curation.review.agreement import FEWEST, Agreement
from cardiolens.curation.review.blinding import Blinding, read_blinding
from cardiolens.curation.review.ceiling import ceiling, lines_of, people_of, told_between, told_person
from cardiolens.curation.review.desk import Desk
from cardiolens.curation.review.ledger import NAME, Ledger, read_ledger
from cardiolens.curation.review.queue import Queue
from cardiolens.curation.review.review_export import exported, keep_quotes, readings, write
from cardiolens.curation.review.review_items import Item, Items, Mode, read_items
from cardiolens.curation.review.review_pictures import Pictures
from cardiolens.curation.review.review_server import review_server
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.score.statistics.hypothesis_tests import wilson

ACCOUNTS = "readers.json"
CEILING = "ceiling.jsonl"
SOURCES = "review-{}.json"  # by mode
PORT = 8431


class Serve(Spec):
    """Options of `serve`."""

    questions: GivenPath
    studies: GivenPath
    out: GivenPath
    mode: Mode
    port: int = Field(PORT, ge=0, le=65535)
    readers: GivenPath | None = None
    protocol: str = "openprotocol-1"


class Add(Spec):
    """Options of `add`."""

    reader: str
    out: GivenPath
    role: Role = "reader"
    readers: GivenPath | None = None


class Export(Spec):
    """Options of `export`."""

    out: GivenPath


class Sources(Spec):
    """Inputs of a review, stored beside the ledger for `export`."""

    schema_: Literal["review-sources-1"] = Field("review-sources-1", alias="schema")
    questions: GivenPath
    studies: GivenPath
    protocol: str


def add(words: Sequence[str]) -> int:
    """Make an account and print its passphrase, once."""
    given = read_words(Add, words)
    path = given.readers or given.out / ACCOUNTS
    _make_writable("out" if given.readers is None else "readers", path.parent)
    passphrase = add_account(path, given.reader, given.role)
    say(f"{given.reader} ({given.role}): {passphrase}")
    say(f"pass it on now: it is not stored; run add again for a new one. Accounts: {path}")
    return 0


def _make_writable(word: str, folder: Path) -> None:
    """Make a folder that is to be written into; InputError if it cannot be one, or not for this user."""
    try:
        disk.make_folder(folder)
    except RunError as error:
        why = error.__cause__.strerror if isinstance(error.__cause__, OSError) else error
        raise InputError(
            f"{word}={folder}: is no folder and cannot be made one ({why}); name a folder of yours"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(
            f"{word}={folder}: cannot be written into; name a folder of yours, or change its mode"
        )


def serve(words: Sequence[str]) -> int:
    """Serve the page until interrupted."""
    given = read_words(Serve, words)
    accounts = given.readers or given.out / ACCOUNTS
    people = read_accounts(accounts).people
    if not people:
        raise InputError(f"readers={accounts}: nobody has an account; make one with the action add")
    items = read_items(given.questions, given.studies, load_catalogue(given.protocol), given.mode)
    _make_writable("out", given.out)
    _keep_sources(given)
    ledger = Ledger(given.out / NAME)
    try:
        blinding = read_blinding(given.out) if given.mode == "read" else Blinding()
        ordered = blinding.in_order(items.items) if given.mode == "read" else items.items
        desk = Desk(items, Queue.of(ordered, ledger, given.mode), Pictures(items.studies), blinding)
        with review_server(desk, Door(accounts), given.port) as server:
            _report(items, given, len(people))
            say(f"page: {server.address} (this machine only; Ctrl-C ends it)")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                return 0
    finally:
        ledger.close()
    return 0


def _report(items: Items, given: Serve, people: int) -> None:
    say(f"mode={given.mode}: {len(items.items)} questions, {len(items.batches)} batches, {people} accounts")
    for reason, count in items.left_out.items():
        say(f"left out: {count} ({reason})")
    if given.mode == "verify" and len(items.items) < FEWEST:
        most = wilson(len(items.items), len(items.items)).low
        say(
            f"fewer than {FEWEST} questions are a small batch: if all are accepted, they show that "
            f"{most:.0%} or more would be"
        )
    say(f"decisions: {given.out / NAME}")


def _keep_sources(given: Serve) -> None:
    """Write the inputs of the review; InputError if `out` holds a review of other inputs."""
    if given.mode == "verify" and given.questions.resolve().parent == given.out.resolve():
        raise InputError(f"out={given.out}: its export would replace {given.questions}; name another out")
    path = given.out / SOURCES.format(given.mode)
    tree = {
        "schema": "review-sources-1",
        "questions": str(given.questions.resolve()),
        "studies": str(given.studies.resolve()),
        "protocol": given.protocol,
    }
    if path.exists() and _sources(given.out, given.mode).model_dump(mode="json", by_alias=True) != tree:
        raise InputError(f"out={given.out}: holds a review of other questions or studies; name another out")
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
    made = 0
    if any(reviews.decided["verify"].values()):
        items = _items(out, "verify")
        result = exported(items, reviews)
        write(out, result)
        keep_quotes(_sources(out, "verify").questions.parent, out)
        for row in [*result.batches, *result.subtasks]:
            say(_line(row))
        counts = f"{len(result.verified)} verified, {len(result.rejects)} rejected, {len(result.open)} open"
        say(f"{len(items)} questions: {counts}: {out}")
        made += len(result.verified)
    if any(reviews.decided["read"].values()):
        items = _items(out, "read")
        for reader, lines in readings(items, reviews).items():
            write_lines(out / "readings" / f"{reader}.jsonl", lines)
            say(f"{reader}: {len(lines)} of {len(items)} questions read: {out / 'readings'}")
            made += len(lines)
        persons, rows = people_of(items, reviews), ceiling(items, reviews)
        write_lines(out / CEILING, lines_of(persons, rows))
        for words_of_row in [*map(told_person, persons), *map(told_between, rows)]:
            say(words_of_row)
    return 0 if made else 1


def _items(out: Path, mode: Mode) -> dict[tuple[str, str], Item]:
    sources = _sources(out, mode)
    listed = read_items(sources.questions, sources.studies, load_catalogue(sources.protocol), mode)
    return {(item.qa_id, item.digest): item for item in listed.items}


def _line(row: Agreement) -> str:
    numbers = f"{row.n_settled}/{row.n_items} settled, {row.n_pairs} pairs, {row.n_patients} patients"
    kappa = f"kappa {_text(row.kappa)}, AC1 {_text(row.ac1)}, of verdicts {_text(row.verdict_kappa)}"
    why = f" ({'; '.join(row.why)})" if row.why else ""
    return f"{row.name}: {numbers}; {kappa}, accepted {_text(row.accepted)}: {row.decision}{why}"


def _text(interval: Any) -> str:
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
