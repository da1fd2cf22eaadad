"""Audit of replies: a person reads a sample of them, without model, rules' reading and true answer.

Every reading is on disk before it is answered; of several on one reply the last counts.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from pydantic import Field

from cardiolens.base import disk
from cardiolens.base.console import say, shown_word
from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec
from cardiolens.config.command_words import read_words
from cardiolens.curation.review.audit_report import Readings, audit_report, lines
from cardiolens.curation.review.replies import (
    SAMPLE,
    Place,
    ReplyView,
    Sample,
    draw,
    judged_choices,
    keep,
    read_sample,
    shown_replies,
)
from cardiolens.show.local_server import (
    LocalServer,
    Reply,
    Request,
    Site,
    json_reply,
    number_of,
    read_body,
    refusal,
    text_reply,
)
from cardiolens.show.notebook.run import FinishedRun, read_run
from cardiolens.show.page.page_rendering import asset, templates
from cardiolens.storage.decision_log import DecisionLog, read_decision_lines
from cardiolens.storage.places import Run
from cardiolens.storage.run_place import RunWord

LEDGER = "audit.jsonl"
SCHEMA = "audit-reading-1"
PORT = 8433
REPLIES = 200  # of each model


class Audit(RunWord):
    """Options of the page."""

    replies: int = Field(REPLIES, ge=20)
    port: int = Field(PORT, ge=0, le=65535)


class Line(Spec):
    """What a person read in one reply: keys of options; none: no answer."""

    arm_id: str
    qa_id: str
    keys: tuple[str, ...] = ()


class _Reading(Spec):
    """What the page sends: displayed letters that a person read in the reply of a number."""

    number: int = Field(ge=0)
    letters: list[str] = Field(max_length=26)


def read_readings(path: Path) -> Readings:
    """Return readings by the place of their reply; InputError for a line that is none."""
    if not path.exists():
        return {}
    stored = read_decision_lines(path, Line, SCHEMA, name=str(path))
    return {(line.arm_id, line.qa_id): line.keys for _, line in stored}


@dataclass
class AuditDesk:
    """A sample, its replies, and what was read in them, in a file that only grows."""

    sample: Sample
    views: Mapping[Place, ReplyView]
    path: Path
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Open the ledger; InputError if another page writes to it, or for a line that is no reading."""
        self._log: DecisionLog[Line] = DecisionLog(
            self.path, SCHEMA, name=str(self.path), writer="audit page"
        )
        try:
            self.readings = read_readings(self.path)
            self._log.mend()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._log.close()

    def state(self, number: int | None = None) -> dict[str, Any]:
        """Return the reply of a number, by default the first that nobody read yet, and how many are read."""
        with self.lock:
            places = [sampled.place for sampled in self.sample.replies]
            unread = (at for at, place in enumerate(places) if place not in self.readings)
            number = next(unread, len(places)) if number is None else number
            n_read = sum(place in self.readings for place in places)
            state: dict[str, Any] = {"number": number, "of": len(places), "read": n_read}
            return state | (self._item(places[number]) if 0 <= number < len(places) else {})

    def _item(self, place: Place) -> dict[str, Any]:
        view, keys = self.views[place], self.readings.get(place)
        letters = {key: letter for letter, key in view.key_of.items()}
        return {
            "question": view.question,
            "options": [[letters[key], text] for key, text in view.options],
            "several": view.several,
            "reply": view.reply,
            "cut": view.cut,
            "chosen": None if keys is None else [letters[key] for key in keys],
        }

    def read(self, number: int, letters: Sequence[str]) -> None:
        """Keep what a person read in a reply.

        InputError for letters that it does not offer, OSError if the disk does not take the reading.
        """
        with self.lock:
            if not 0 <= number < len(self.sample.replies):
                raise InputError(f"reply {number}: there are {len(self.sample.replies)}; load the page again")
            place = self.sample.replies[number].place
            view = self.views[place]
            if not set(letters) <= view.key_of.keys() or len(set(letters)) < len(letters):
                raise InputError(f"letters {letters}: choose of {', '.join(view.key_of)}, each once")
            if len(letters) > 1 and not view.several:
                raise InputError(
                    "the question takes one option; choose one, or none where the reply names two"
                )
            keys = tuple(view.key_of[letter] for letter in letters)
            self._log.append(Line(arm_id=place[0], qa_id=place[1], keys=keys))
            self.readings[place] = keys


def audit_server(desk: AuditDesk, port: int = 0) -> LocalServer:
    """Make a server without starting it; port 0 takes a free port."""

    def read(request: Request) -> Reply | None:
        match request.parts:
            case [""] | ["index.html"]:
                return text_reply("html", templates().get_template("audit.html").render())
            case ["audit.js" | "audit.css" as name]:
                return text_reply("js" if name.endswith(".js") else "css", asset(name))
            case ["next.json"]:
                return json_reply(desk.state())
            case ["replies", number]:
                return json_reply(desk.state(number_of(number)))
            case _:
                return None

    def change(request: Request) -> Reply | None:
        if list(request.parts) != ["read"]:
            return None
        reading = read_body(request, _Reading)
        if isinstance(reading, Reply):
            return reading
        try:
            desk.read(reading.number, reading.letters)
        except InputError as error:
            return refusal(HTTPStatus.OK, str(error))
        except OSError as error:
            reason = f"not saved: the file of readings cannot be written ({error.strerror or error})"
            return refusal(HTTPStatus.OK, reason)
        return json_reply(desk.state())

    return LocalServer(Site(read, change), port)


def audit(words: Sequence[str]) -> int:
    """Serve the page until interrupted, then report."""
    options = read_words(Audit, words)
    run = read_run(options.run, options.store)
    path = run.folder / SAMPLE
    sample = read_sample(path)
    if sample is None:  # the same run gives the same sample
        sample = draw(judged_choices(run), options.replies, seed=0)
        keep(path, sample)
    views = shown_replies(run, [sampled.place for sampled in sample.replies])
    with closing(AuditDesk(sample, views, run.folder / LEDGER)) as desk:
        with audit_server(desk, options.port) as server:
            n_read = desk.state()["read"]
            say(f"{len(sample.replies)} replies of {len(sample.sizes)} models, {n_read} read so far")
            say(f"page: {server.address} (this machine only; Ctrl-C ends it)")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                say("")
        return _report(run, sample, desk.readings)


def report(words: Sequence[str]) -> int:
    """Write and print the rates of what was read so far."""
    options = read_words(RunWord, words)
    run = read_run(options.run, options.store)
    sample = read_sample(run.folder / SAMPLE)
    if sample is None:
        raise InputError(
            f"{run.folder}: has no audit yet; begin one with "
            f"python -m cardiolens.review audit {shown_word('run', run.folder)}"
        )
    return _report(run, sample, read_readings(run.folder / LEDGER))


def _report(run: FinishedRun, sample: Sample, readings: Readings) -> int:
    if not readings:
        say("nothing is read yet, so there is no rate")
        return 0
    tree = audit_report(sample, readings, judged_choices(run))
    path = Run(run.folder).audit
    disk.write_text(path, json.dumps(tree, indent=1) + "\n")
    for line in lines(tree):
        say(line)
    say(f"audit: {path}; python -m cardiolens.judge {shown_word('run', run.folder)} puts it on the page")
    return 0
