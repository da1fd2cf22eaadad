"""Audit of replies: a person reads a sample of them on the page of review, without model, reading or answer.

The rates of misread and missed replies follow by model, and how far the share of right answers would move.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from typing import Any

from pydantic import Field

from cardiolens.base import disk
from cardiolens.base.console import say, shown_word
from cardiolens.base.errors import InputError
from cardiolens.config.command_words import read_words
from cardiolens.curation.review.desk import Blinding, Desk
from cardiolens.curation.review.ledger import Ledger, Reviews, read_ledger
from cardiolens.curation.review.people import People, Person
from cardiolens.curation.review.queue import Queue
from cardiolens.curation.review.replies import (
    SAMPLE,
    Place,
    ReplyView,
    Row,
    Sample,
    draw,
    judged_choices,
    keep,
    read_sample,
    shown_replies,
)
from cardiolens.curation.review.review_items import Item, Items
from cardiolens.curation.review.review_pictures import Pictures
from cardiolens.curation.review.review_server import serve_desk
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.questions import Question
from cardiolens.score.statistics.misreading import Stratum, misreading, shift
from cardiolens.show.notebook.run import FinishedRun, read_run
from cardiolens.storage.places import Run
from cardiolens.storage.run_place import RunWord

LEDGER = "audit.jsonl"
AUDITOR = "auditor"
PORT = 8433
REPLIES = 200  # of each model
_ASKED = ("qa_id", "study_id", "tier", "subtask", "sequence", "question", "answer_type")
Readings = dict[Place, tuple[str, ...]]  # option keys; none: no answer


class Audit(RunWord):
    """Options of an audit."""

    replies: int = Field(REPLIES, ge=20)
    port: int = Field(PORT, ge=0, le=65535)


def audit(words: Sequence[str]) -> int:
    """Serve the page until interrupted, then report."""
    options = read_words(Audit, words)
    run = read_run(options.run, options.store)
    sample = read_sample(run.folder / SAMPLE)
    if sample is None:  # the same run gives the same sample
        sample = draw(judged_choices(run), options.replies, seed=0)
        keep(run.folder / SAMPLE, sample)
    views = shown_replies(run, [sampled.place for sampled in sample.replies])
    people = People({secrets.token_urlsafe(24): Person(AUDITOR, "reader")})
    with closing(Ledger(run.folder / LEDGER)) as ledger:
        desk = audit_desk(run, sample, views, ledger, people.key)
        n_read = desk.queue.done(AUDITOR)
        say(f"{len(sample.replies)} replies of {len(sample.sizes)} models, {n_read} read so far")
        serve_desk(desk, people, options.port)
        return _report(run, sample, readings_of(ledger.reviews, views))


def audit_desk(
    run: FinishedRun, sample: Sample, views: Mapping[Place, ReplyView], ledger: Ledger, key: bytes
) -> Desk:
    """Return the desk of an audit: replies in the order of the sample, under names that tell no arm."""
    catalogue = load_catalogue(run.configuration.dataset.protocol)
    rows = {row["qa_id"]: row for row in run.questions.to_pylist()}
    items = []
    for arm_id, qa_id in (sampled.place for sampled in sample.replies):
        view = views[arm_id, qa_id]
        subtask = replace(catalogue[rows[qa_id]["subtask"]], parent=None, exclusive=())
        question = _as_displayed(rows[qa_id], view)
        items.append(Item(question, {}, subtask, "", "", arm_id, view.reply, view.cut))
    return Desk(Items(()), Queue.of(items, ledger, "audit"), Pictures({}), Blinding(key))


def _as_displayed(row: Row, view: ReplyView) -> Question:
    """Return a question without its answer, its options under the letters that the model saw."""
    letters = zip(view.key_of, view.options, strict=True)
    options = [{"key": letter, "text": text} for letter, (_, text) in letters]
    rest = {"schema": "qa-1", "patient_id": "-", "origin": "reader", "protocol": "-", "options": options}
    return Question.model_validate({name: row[name] for name in _ASKED} | rest)


def readings_of(reviews: Reviews, views: Mapping[Place, ReplyView]) -> Readings:
    """Return what was read in each reply, as keys of options."""
    readings: Readings = {}
    for place, view in views.items():
        line = reviews.of("audit", (place[1], place[0])).get(AUDITOR)
        if line is not None:
            readings[place] = tuple(view.key_of[letter] for letter in line.answer)
    return readings


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
    views = shown_replies(run, [sampled.place for sampled in sample.replies])
    return _report(run, sample, readings_of(read_ledger(run.folder / LEDGER), views))


def _report(run: FinishedRun, sample: Sample, readings: Readings) -> int:
    if not readings:
        say("nothing is read yet, so there is no rate")
        return 0
    tree = audit_report(sample, readings, judged_choices(run))
    path = Run(run.folder).audit
    disk.write_text(path, json.dumps(tree, indent=1) + "\n")
    for entry in tree["models"]:
        say(
            f"{entry['model']}: {100 * entry['right']:.1f} % right; {_percent(entry['misread'])} % misread, "
            f"{_percent(entry['missed'])} % missed ({entry['audited']} of {entry['replies']} replies read by "
            f"a person); read by the person, the share right moves by {_percent(entry['shift'], '+')} points"
        )
    say(f"audit: {path}; python -m cardiolens.judge {shown_word('run', run.folder)} puts it on the page")
    return 0


def audit_report(sample: Sample, readings: Readings, verdicts: Sequence[Row]) -> dict[str, Any]:
    """Compare the person's readings with those of the rules, as they stand now.

    A reply is misread if the rules name options and the person names others or none; it is missed if the
    rules name none where the person does. `verdicts` are all judged ones, with `model`.
    """
    by_place = {(row["arm_id"], row["qa_id"]): row for row in verdicts}
    models = [_of_model(model, sample, readings, by_place) for model in sample.sizes]
    for entry in models:
        right = [bool(row["correct"]) for row in verdicts if row["model"] == entry["model"]]
        entry["right"] = sum(right) / len(right)
    return {"schema": "audit-1", "models": sorted(models, key=lambda entry: -entry["right"])}


def _of_model(
    model: str, sample: Sample, readings: Readings, by_place: Mapping[Place, Row]
) -> dict[str, Any]:
    misread, missed = [], []
    for name, size in sample.sizes[model].items():
        pairs = [
            (by_place[sampled.place], set(readings[sampled.place]))
            for sampled in sample.replies
            if (sampled.model, sampled.stratum) == (model, name)
            and sampled.place in readings
            and sampled.place in by_place
        ]
        net_shift = sum((keys == set(row["gold"])) - bool(row["correct"]) for row, keys in pairs)
        wrong = sum(bool(row["parsed"]) and set(row["parsed"]) != keys for row, keys in pairs)
        unread = sum(not row["parsed"] and bool(keys) for row, keys in pairs)
        misread.append(Stratum(size, len(pairs), wrong, net_shift))
        missed.append(Stratum(size, len(pairs), unread))
    return {
        "model": model,
        "replies": sum(stratum.size for stratum in misread),
        "audited": sum(stratum.audited for stratum in misread),
        "misread": asdict(misreading(misread)),
        "missed": asdict(misreading(missed)),
        "shift": asdict(shift(misread)),
    }


def _percent(estimate: Mapping[str, float], sign: str = "") -> str:
    value, low, high = (f"{100 * estimate[name]:{sign}.1f}" for name in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"
