"""Audit of replies: a person reads a sample of them on the page of review, without model, reading or answer.

The rates of misread and missed replies follow by model, and how far the share of right answers would move.
"""

import json
import math
import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from cardiolens.base import disk
from cardiolens.base.console import say, shown_word
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import Spec
from cardiolens.config.sweep_factors import arms
from cardiolens.curation.review.desk import Blinding, Desk, serve_desk
from cardiolens.curation.review.people import People
from cardiolens.curation.review.queue import Ledger, Queue, Reviews, read_ledger
from cardiolens.curation.review.review_items import Item
from cardiolens.curation.review.review_pictures import Pictures
from cardiolens.protocol.dialogue.chain import SAMPLED
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.protocol.tasks.questions import Question
from cardiolens.score.statistics.misreading import Stratum, misreading, shift
from cardiolens.show.notebook.run import FinishedRun, read_run
from cardiolens.storage.places import Run, RunWord

LEDGER = "audit.jsonl"
SAMPLE = "audit_sample.json"
AUDITOR = "auditor"
YOUNG = frozenset({"ok: answer_phrase"})  # strata of rules that have been used least
_LEAST = 5  # replies of a stratum, where it has as many
_MORE = 2.0  # times as many of young rules, and of what was not read
_QUESTION = ("qa_id", "study_id", "tier", "subtask", "sequence", "question", "answer_type")
_VERDICT = ("arm_id", "qa_id", "request_key", "status", "parse_status", "rule", "parsed", "gold", "correct")
Place = tuple[str, str]  # qa_id and arm_id, which is the key of a reply as an item of review
Row = Mapping[str, Any]
Readings = Mapping[Place, tuple[str, ...]]  # option keys; none: no answer


class Audit(RunWord):
    """Options of an audit."""

    replies: int = Field(200, ge=20)  # of each model
    port: int = Field(8433, ge=0, le=65535)


class Sampled(Spec):
    """One reply of the sample, by the place of its verdict, and its stratum."""

    model: str
    arm_id: str
    qa_id: str
    stratum: str  # status and rule when the sample was drawn

    @property
    def place(self) -> Place:
        return self.qa_id, self.arm_id


class Sample(Spec):
    """Replies in the order in which they are read, and the sizes of their strata."""

    schema_: Literal["audit-sample-1"] = Field(alias="schema")
    replies: tuple[Sampled, ...]
    sizes: Mapping[str, Mapping[str, int]]  # model -> stratum -> replies in the run


def audit(options: Audit) -> int:
    """Serve the page until interrupted, then report."""
    run = read_run(options.run, options.store)
    sample = read_sample(run.folder / SAMPLE)
    if sample is None:  # the same run gives the same sample
        sample = draw(judged_choices(run), options.replies, seed=0)
        keep(run.folder / SAMPLE, sample)
    people = People.alone(AUDITOR)
    with closing(Ledger(run.folder / LEDGER)) as ledger:
        desk = audit_desk(run, sample, ledger, people.key)
        n_read = desk.queue.done(AUDITOR)
        say(f"{len(sample.replies)} replies of {len(sample.sizes)} models, {n_read} read so far")
        serve_desk(desk, people, options.port)
        return _report(run, sample, readings_of(ledger.reviews, list(desk.queue.items.values())))


def report(options: RunWord) -> int:
    """Write and print the rates of what was read so far."""
    run = read_run(options.run, options.store)
    sample = read_sample(run.folder / SAMPLE)
    if sample is None:
        raise InputError(
            f"{run.folder}: has no audit yet; begin one with "
            f"python -m cardiolens.review audit {shown_word('run', run.folder)}"
        )
    return _report(run, sample, readings_of(read_ledger(run.folder / LEDGER), sampled_items(run, sample)))


def audit_desk(run: FinishedRun, sample: Sample, ledger: Ledger, key: bytes) -> Desk:
    """Return the desk of an audit: replies in the order of the sample, under names that reveal no arm."""
    return Desk(Queue(sampled_items(run, sample), ledger, "audit"), Pictures({}), Blinding(key))


def judged_choices(run: FinishedRun) -> list[dict[str, Any]]:
    """Return the judged replies to choice questions, each with its model.

    Replies of several samples are left out: what is judged of them is a vote.
    """
    model_of = {arm.arm_id: arm.model.name for arm in arms(run.configuration)}
    verdicts, completions = run.verdicts, run.completions
    is_choice = pc.and_(pc.equal(verdicts["channel"], "answer"), pc.equal(verdicts["status"], "judged"))
    sampled = completions.filter(pc.equal(completions["finish_reason"], SAMPLED))["request_key"]
    votes = set(sampled.to_pylist())
    rows = verdicts.filter(is_choice).select(_VERDICT).to_pylist()
    chosen = [row | {"model": model_of[row["arm_id"]]} for row in rows if row["request_key"] not in votes]
    if not chosen:
        raise InputError(f"{run.folder}: holds no judged reply to a choice question; nothing can be misread")
    return chosen


def draw(verdicts: Sequence[Row], per_model: int, seed: int) -> Sample:
    """Draw about `per_model` replies of each model from judged verdicts, which name their model."""
    dice = random.Random(seed)
    strata: dict[str, dict[str, list[Row]]] = {}
    for row in verdicts:
        name = f"{row['parse_status']}: {row['rule']}"
        strata.setdefault(row["model"], {}).setdefault(name, []).append(row)
    sizes = {model: {name: len(rows) for name, rows in by_name.items()} for model, by_name in strata.items()}
    replies: list[Sampled] = []
    for model, by_name in strata.items():
        numbers = allocate(sizes[model], per_model)
        for name, rows in by_name.items():
            for row in dice.sample(rows, numbers[name]):
                replies.append(Sampled(model=model, arm_id=row["arm_id"], qa_id=row["qa_id"], stratum=name))
    dice.shuffle(replies)  # the order reveals neither model nor rule
    return Sample(schema="audit-sample-1", replies=tuple(replies), sizes=sizes)


def allocate(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Return how many replies of each stratum are read: by size, a few at least, more of young rules."""
    usual = {name for name in sizes if name.startswith("ok: ")} - YOUNG
    weights = {name: size * (1.0 if name in usual else _MORE) for name, size in sizes.items()}
    rest = max(0, total - _LEAST * len(sizes)) / sum(weights.values())
    return {name: min(size, _LEAST + math.ceil(rest * weights[name])) for name, size in sizes.items()}


def keep(path: Path, sample: Sample) -> None:
    """Write a sample; later audits of the run read the same replies."""
    disk.write_text(path, json.dumps(sample.model_dump(mode="json", by_alias=True), indent=1) + "\n")


def read_sample(path: Path) -> Sample | None:
    """Read the sample of a run; None if none was drawn yet."""
    if not path.is_file():
        return None
    try:
        return Sample.model_validate(read_json(path))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: is no sample of an audit ({error}); delete it and run again") from error


def sampled_items(run: FinishedRun, sample: Sample) -> list[Item]:
    """Return the sampled replies as items, in their order; the record of each is its question and request."""
    catalogue = load_catalogue(run.configuration.dataset.protocol)
    places = {sampled.place for sampled in sample.replies}
    questions = {row["qa_id"]: row for row in run.questions.to_pylist()}
    qa_ids = pa.array(sorted({qa_id for qa_id, _ in places}), pa.string())
    requests = run.requests.filter(pc.is_in(run.requests["qa_id"], value_set=qa_ids))
    completions = {row["request_key"]: row for row in run.completions.to_pylist()}
    items: dict[Place, Item] = {}
    for request in requests.select(["arm_id", "qa_id", "request_key", "option_keys"]).to_pylist():
        place, completion = (request["qa_id"], request["arm_id"]), completions.get(request["request_key"])
        if place in places and completion is not None:
            items[place] = _item(questions[place[0]], request, completion, catalogue)
    if absent := places - items.keys():
        raise InputError(
            f"{run.folder}: {len(absent)} sampled replies are not in its store; put the store back"
        )
    return [items[sampled.place] for sampled in sample.replies]


def _item(row: Row, request: Row, completion: Row, catalogue: Catalogue) -> Item:
    """Return a reply with its question: options under the letters that the model saw, and no answer."""
    texts = {option["key"]: option["text"] for option in row["options"]}
    displayed = request["option_keys"] or list(texts)
    letters = zip(sorted(displayed), displayed, strict=True)
    options = [{"key": letter, "text": texts[key]} for letter, key in letters]
    rest = {"schema": "qa-1", "patient_id": "-", "origin": "reader", "protocol": "-", "options": options}
    question = Question.model_validate({name: row[name] for name in _QUESTION} | rest)
    subtask = replace(catalogue[row["subtask"]], parent=None, exclusive=())
    is_cut = completion["finish_reason"] == "length"
    record = {"displayed": displayed}
    reply = completion["text"] or ""
    return Item(question, record, subtask, "", "", request["arm_id"], reply=reply, is_cut=is_cut)


def readings_of(reviews: Reviews, replies: Sequence[Item]) -> Readings:
    """Return what the person read in each reply, as keys of options."""
    lines = reviews.of_reader(AUDITOR, "audit")
    displayed = {item.key: item.record["displayed"] for item in replies if item.key in lines}
    key_of = {place: dict(zip(sorted(keys), keys, strict=True)) for place, keys in displayed.items()}
    return {place: tuple(keys[letter] for letter in lines[place].answer) for place, keys in key_of.items()}


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
    by_model: dict[str, dict[Place, Row]] = {}
    for row in verdicts:
        by_model.setdefault(row["model"], {})[row["qa_id"], row["arm_id"]] = row
    models = [
        _of_model(model, sample, readings, by_model[model]) for model in sample.sizes if model in by_model
    ]
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
        "right": sum(bool(row["correct"]) for row in by_place.values()) / len(by_place),
        "misread": asdict(misreading(misread)),
        "missed": asdict(misreading(missed)),
        "shift": asdict(shift(misread)),
    }


def _percent(estimate: Mapping[str, float], sign: str = "") -> str:
    value, low, high = (f"{100 * estimate[name]:{sign}.1f}" for name in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"
