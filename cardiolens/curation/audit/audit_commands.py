"""Actions of the `audit` command: `serve` the page, `report` the rates; and the second reading of replies."""

import json
from collections.abc import Sequence
from contextlib import closing

from pydantic import Field

from cardiolens.base import disk
from cardiolens.base.console import say, shown_word
from cardiolens.base.errors import InputError
from cardiolens.config.command_words import read_words
from cardiolens.curation.asking.ask_texts import asking_spec
from cardiolens.curation.audit.audit_desk import AuditDesk
from cardiolens.curation.audit.audit_ledger import LEDGER, AuditLedger, Readings, read_readings
from cardiolens.curation.audit.audit_report import audit_report, lines
from cardiolens.curation.audit.audit_sample import SAMPLE, Sample, Sampled, draw, keep, read_sample
from cardiolens.curation.audit.audit_server import audit_server
from cardiolens.curation.audit.audited_run import judged_choices, shown_replies
from cardiolens.curation.audit.reread_replies import document, reread
from cardiolens.show.notebook.run import FinishedRun, read_run
from cardiolens.storage.places import Run
from cardiolens.storage.run_word import RunWord

PORT = 8433
REPLIES = 200  # of each model


class Serve(RunWord):
    """Options of `serve`."""

    replies: int = Field(REPLIES, ge=20)
    port: int = Field(PORT, ge=0, le=65535)


def serve(words: Sequence[str]) -> int:
    """Serve the page until interrupted, then report."""
    options = read_words(Serve, words)
    run = read_run(options.run, options.store)
    sample = _sample(run, options.replies)
    with closing(AuditLedger(run.folder / LEDGER)) as ledger:
        desk = AuditDesk(sample, shown_replies(run, sample.replies), ledger)
        with audit_server(desk, options.port) as server:
            n_read = desk.state()["read"]
            say(f"{len(sample.replies)} replies of {len(sample.sizes)} models, {n_read} read so far")
            say(f"page: {server.address} (this machine only; Ctrl-C ends it)")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                say("")
    return _report(run, sample, ledger.readings)


def report(words: Sequence[str]) -> int:
    """Write and print the rates of what was read so far."""
    options = read_words(RunWord, words)
    run = read_run(options.run, options.store)
    sample = read_sample(run.folder / SAMPLE)
    if sample is None:
        raise InputError(
            f"{run.folder}: has no audit yet; begin one with "
            f"python -m cardiolens.audit {shown_word('run', run.folder)}"
        )
    return _report(run, sample, read_readings(run.folder / LEDGER))


def second_reading(run: FinishedRun, about_model: Sequence[str]) -> int:
    """Let a model read the replies that the rules left unread or inconsistent; no verdict changes."""
    spec = run.configuration
    rows = [row for row in judged_choices(run) if not row["parsed"] or row["parse_status"] == "inconsistent"]
    rows = [row for row in rows if row["parse_status"] != "refusal"]
    if not rows:
        say("the rules read every reply; there is nothing to read a second time")
        return 0
    sweep = asking_spec(spec.store, run.folder / "second_reading", spec.dataset.protocol, about_model)
    (model,) = sweep.model
    places = [Sampled(row["model"], row["arm_id"], row["qa_id"], "") for row in rows]
    tree = document(model.name, rows, reread(sweep, shown_replies(run, places)))
    path = run.folder / f"reply_readings-{model.name}.json"
    disk.write_text(path, json.dumps(tree, indent=1) + "\n")
    say(
        f"{model.name} reads an answer in {tree['read']} of {tree['replies']} replies that the rules left "
        f"unread or inconsistent, none in {tree['none']}; {tree['unusable']} of its own replies were no use"
    )
    say(f"second reading: {path} (no verdict changed)")
    return 0 if tree["unusable"] < tree["replies"] else 1


def _sample(run: FinishedRun, replies: int) -> Sample:
    """The sample of a run, drawn once; the same run gives the same sample."""
    path = run.folder / SAMPLE
    sample = read_sample(path)
    if sample is None:
        sample = draw(judged_choices(run), replies, seed=0)
        keep(path, sample)
    return sample


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
