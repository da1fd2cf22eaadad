"""`python -m cardiolens.reread run=outputs/... model=...`: a second reading of the text of a run's reports.

A language model reads the text that the rules read; with `of=replies`, the replies to choice questions that
the rules left unread or inconsistent, into `reply_readings-<model>.json`; with `of=errors`, each report and
its reference, for errors by type and weight, into `report_errors-<model>.json`. Both scores and their
agreement go to `second_reading-<model>.json` in the run's folder. The verdicts of the rules do not change.
"""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import model_validator

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.config.base import GivenPath
from cardiolens.storage.places import Run
from cardiolens.storage.run_word import RunWord


class RereadWords(RunWord):
    """The words of the command on one run."""

    of: Literal["reports", "replies", "errors"] = "reports"
    people: GivenPath | None = None  # of=errors: the errors that people found, to compare with

    @model_validator(mode="after")
    def _of_people(self) -> Self:
        if self.people is not None and self.of != "errors":
            raise ValueError(f"people= is compared with errors, and of is {self.of}; add of=errors")
        return self


def main() -> int:
    from cardiolens.config.command_words import MODEL_OPTIONS, check_once, split_words
    from cardiolens.runtime.stopping import StoppedError

    begin()
    try:
        words, about_model = split_words(RereadWords, sys.argv[1:], MODEL_OPTIONS)
        check_once(about_model)
        if not about_model:
            raise InputError(
                "model= is not given; give the entry of conf/model that reads, e.g. model=qwen3_vl_8b"
            )
        if words.of == "replies":
            from cardiolens.curation.audit.audit_commands import second_reading
            from cardiolens.show.notebook.run import read_run

            run = words.open()
            return second_reading(read_run(run.root, run.given_store), about_model)
        if words.of == "errors":
            return judge_errors(words.open(), about_model, words.people)
        return reread(words.open(), about_model)
    except (InputError, RunError, StoppedError) as error:
        return tell(error)


def reread(run: Run, about_model: Sequence[str]) -> int:
    """Read the texts, write and print both scores; return 0 if the model read at least one text, else 1."""
    from cardiolens.base import disk
    from cardiolens.base.console import say
    from cardiolens.config.arms import arms
    from cardiolens.curation.asking.ask_texts import asking_spec
    from cardiolens.curation.questions.model_reader import read_with_model
    from cardiolens.curation.report_judge.second_reading import readings, texts_of
    from cardiolens.protocol.tasks.catalogue import load_catalogue
    from cardiolens.score.run_results.stored_replies import check_stored
    from cardiolens.show.terminal.second_reading_table import show_readings
    from cardiolens.storage import documents

    if not about_model:
        raise InputError(
            "model= is not given; give the entry of conf/model that reads, e.g. model=qwen3_vl_8b"
        )
    spec = documents.read_configuration(run)
    check_stored(run)
    catalogue = load_catalogue(spec.dataset.protocol)
    report_texts = texts_of(run, spec, catalogue)
    if not report_texts.records:
        raise InputError(f"{run.root}: holds no report with text; sweep R-CINE, R-LGE, R-PERF or R-T2 first")
    folder = run.root / "second_reading"
    sweep = asking_spec(spec.store, folder, spec.dataset.protocol, about_model)
    (model,) = sweep.model
    numbers = list(report_texts.records)
    results = read_with_model(sweep, [report_texts.records[number] for number in numbers], catalogue)
    second_readings = readings(report_texts, dict(zip(numbers, results, strict=True)), catalogue)
    scores = second_readings.scores(spec.statistics)
    judged_by_itself = {
        arm.arm_id
        for arm in arms(spec)
        if arm.model.name == model.name or (arm.model.source and arm.model.source == model.source)
    }
    document = {
        "model": model.name,
        "texts": len(report_texts.sections),
        "distinct_texts": len(numbers),
        "unread": second_readings.n_unread,
        "reads_itself": sorted(judged_by_itself & set(scores["rules"])),
        "scores": scores,
    }
    path = run.root / f"second_reading-{model.name}.json"
    disk.write_text(path, json.dumps(_without_nan(document), indent=1) + "\n")
    show_readings(document, arms(spec))
    say(f"second reading: {path}")
    return 0 if len(second_readings.model) else 1


def judge_errors(run: Run, about_model: Sequence[str], people: Path | None) -> int:
    """Judge the reports, write and print their errors; return 0 if at least one was judged, else 1."""
    from cardiolens.base import disk
    from cardiolens.base.console import say
    from cardiolens.config.arms import arms
    from cardiolens.curation.asking.ask_texts import asking_spec
    from cardiolens.curation.report_judge.report_error_counts import document, read_people, run_reports
    from cardiolens.curation.report_judge.report_errors import judge_reports
    from cardiolens.protocol.tasks.catalogue import load_catalogue
    from cardiolens.score.run_results.stored_replies import check_stored
    from cardiolens.show.terminal.report_errors_table import show_report_errors
    from cardiolens.storage import documents

    spec = documents.read_configuration(run)
    check_stored(run)
    reports = run_reports(run, spec, load_catalogue(spec.dataset.protocol))
    if not reports:
        raise InputError(f"{run.root}: holds no report with text; sweep R-CINE, R-LGE, R-PERF or R-T2 first")
    by_people = None if people is None else read_people(people, reports)
    sweep = asking_spec(spec.store, run.root / "second_reading", spec.dataset.protocol, about_model)
    (model,) = sweep.model
    judgements = judge_reports(sweep, [report.pair for report in reports])
    errors = document(model.name, reports, judgements, by_people)
    judging_itself = {arm.arm_id for arm in arms(spec) if model.source and arm.model.source == model.source}
    judging_itself |= {arm.arm_id for arm in arms(spec) if arm.model.name == model.name}
    errors["judges_itself"] = sorted(judging_itself & errors["arms"].keys())
    path = run.root / f"report_errors-{model.name}.json"
    disk.write_text(path, json.dumps(errors, indent=1) + "\n")
    show_report_errors(errors, arms(spec), errors["judges_itself"])
    say(f"errors of reports: {path}")
    return 0 if errors["arms"] else 1


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
