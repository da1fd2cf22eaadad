"""`python -m cardiolens.judge run=outputs/...`: judge and score the replies of a run again.

No engine is asked. It replaces verdicts, scores and analyses. `runs=[outputs/...,outputs/...]` judges several
runs as one. `reading=all` also scores the stored replies by three rules of other evaluations, for a table of
scores and ranks on the page and in the export.

With `of=` and `model=` a language model reads as well, beside the rules, whose verdicts do not change:
`of=reports` the text of reports, into `second_reading-<model>.json`; `of=replies` the replies to choice
questions that the rules left unread or inconsistent, into `reply_readings-<model>.json`; `of=errors` each
report and its reference, for errors by type and weight, into `report_errors-<model>.json`.
"""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import model_validator

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.commands.command import door
from cardiolens.config.arms import arms
from cardiolens.config.base import GivenPath
from cardiolens.config.command_words import MODEL_OPTIONS, check_once, read_words, split_words
from cardiolens.config.sweep import SweepSpec
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.score.run_results.stored_replies import check_stored
from cardiolens.storage import documents
from cardiolens.storage.places import Run
from cardiolens.storage.run_place import RunWord, RunWords
from cardiolens.workflow.steps.judge_run import judge, judge_together

_NO_REPORT = "holds no report with text; sweep R-CINE, R-LGE, R-PERF or R-T2 first"


class Words(RunWords):
    """Options of the command."""

    reading: Literal["strict", "all"] = "strict"  # all: also by three rules of other evaluations

    @model_validator(mode="after")
    def _of_one_run(self) -> Self:
        if self.reading == "all" and self.runs is not None:
            raise ValueError("reading: all is of one run; give run=... in the place of runs=[...]")
        return self


class ReadingWords(RunWord):
    """Options of a second reading; those of `model` are a sweep's."""

    of: Literal["reports", "replies", "errors"]  # what the model reads
    people: GivenPath | None = None  # of=errors: the errors that people found, to compare with

    @model_validator(mode="after")
    def _of_people(self) -> Self:
        if self.people is not None and self.of != "errors":
            raise ValueError(f"people= is compared with errors, and of is {self.of}; add of=errors")
        return self


def main() -> int:
    """Judge the runs that the command line names, or have a model read one."""
    return door(__doc__, {"": Words, "a second reading": ReadingWords}, _judge)


def _judge(given: list[str]) -> int:
    if not any(word.startswith("of=") for word in given):
        words = read_words(Words, given)
        runs = words.open()
        return judge(runs[0], by_others=words.reading == "all") if len(runs) == 1 else judge_together(runs)
    reading, about_model = split_words(ReadingWords, given, MODEL_OPTIONS)
    check_once(about_model)
    if not about_model:
        raise InputError(
            "model= is not given; give the entry of conf/model that reads, e.g. model=qwen3_vl_8b"
        )
    run = reading.open()
    if reading.of == "replies":
        from cardiolens.curation.review.reread_replies import second_reading
        from cardiolens.show.notebook.run import read_run

        return second_reading(read_run(run.root, run.given_store), about_model)
    if reading.of == "errors":
        return judge_errors(run, about_model, reading.people)
    return reread(run, about_model)


def reread(run: Run, about_model: Sequence[str]) -> int:
    """Read the texts, write and print both scores; return 0 if the model read at least one text, else 1."""
    from cardiolens.curation.questions.model_reader import read_with_model
    from cardiolens.curation.report_judge.second_reading import readings, texts_of
    from cardiolens.show.terminal.second_readings import show_readings

    spec, catalogue = _stored(run)
    report_texts = texts_of(run, spec, catalogue)
    if not report_texts.records:
        raise InputError(f"{run.root}: {_NO_REPORT}")
    sweep = _asking(run, spec, about_model)
    numbers = list(report_texts.records)
    results = read_with_model(sweep, [report_texts.records[number] for number in numbers], catalogue)
    second_readings = readings(report_texts, dict(zip(numbers, results, strict=True)), catalogue)
    scores = second_readings.scores(spec.statistics)
    document = {
        "model": sweep.model[0].name,
        "texts": len(report_texts.sections),
        "distinct_texts": len(numbers),
        "unread": second_readings.n_unread,
        "reads_itself": sorted(_own_arms(sweep, spec) & set(scores["rules"])),
        "scores": scores,
    }
    _write(run, "second_reading", document)
    show_readings(document, arms(spec))
    return 0 if len(second_readings.model) else 1


def judge_errors(run: Run, about_model: Sequence[str], people: Path | None) -> int:
    """Judge the reports, write and print their errors; return 0 if at least one was judged, else 1."""
    from cardiolens.curation.report_judge.report_error_counts import document, read_people, run_reports
    from cardiolens.curation.report_judge.report_errors import judge_reports
    from cardiolens.show.terminal.second_readings import show_report_errors

    spec, catalogue = _stored(run)
    reports = run_reports(run, spec, catalogue)
    if not reports:
        raise InputError(f"{run.root}: {_NO_REPORT}")
    by_people = None if people is None else read_people(people, reports)
    sweep = _asking(run, spec, about_model)
    judgements = judge_reports(sweep, [report.pair for report in reports])
    errors = document(sweep.model[0].name, reports, judgements, by_people)
    errors["judges_itself"] = sorted(_own_arms(sweep, spec) & errors["arms"].keys())
    _write(run, "report_errors", errors)
    show_report_errors(errors, arms(spec))
    return 0 if errors["arms"] else 1


def _stored(run: Run) -> tuple[SweepSpec, Catalogue]:
    """The configuration of a judged run and its catalogue; InputError where replies of it are lost."""
    spec = documents.read_configuration(run)
    check_stored(run)
    return spec, load_catalogue(spec.dataset.protocol)


def _asking(run: Run, spec: SweepSpec, about_model: Sequence[str]) -> SweepSpec:
    """The sweep that asks the model that reads."""
    from cardiolens.curation.asking.ask_texts import asking_spec

    return asking_spec(spec.store, run.root / "second_reading", spec.dataset.protocol, about_model)


def _own_arms(sweep: SweepSpec, spec: SweepSpec) -> set[str]:
    """The arms whose texts the reading model wrote itself."""
    (model,) = sweep.model
    own = {each.name for each in spec.model if each.name == model.name or (each.source == model.source != "")}
    return {arm.arm_id for arm in arms(spec) if arm.model.name in own}


def _write(run: Run, name: str, document: dict[str, Any]) -> None:
    path = run.root / f"{name}-{document['model']}.json"
    disk.write_text(path, json.dumps(_without_nan(document), indent=1) + "\n")
    say(f"written: {path}")


def _without_nan(value: object) -> object:
    """Replace NaN by None, which JSON writes as null."""
    match value:
        case dict():
            return {name: _without_nan(entry) for name, entry in value.items()}
        case float() if math.isnan(value):
            return None
        case _:
            return value


if __name__ == "__main__":
    sys.exit(main())
