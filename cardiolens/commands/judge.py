"""`python -m cardiolens.judge run=outputs/...`: judge and score the replies of a run again.

No engine is asked. It replaces verdicts, scores and analyses. `runs=[outputs/...,outputs/...]` judges several
runs as one. `reading=all` also scores the stored replies by three rules of other evaluations, for a table of
scores and ranks on the page and in the export.

With `of=errors` and `model=` a language model compares each report with its reference, for errors by type and
weight, into `report_errors-<model>.json`; verdicts do not change.
"""

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import model_validator
from pydantic_core import to_json

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.commands.command import Action, verb
from cardiolens.config.command_words import MODEL_OPTIONS
from cardiolens.storage.places import Run, RunWord, RunWords
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
    """Options of a model as judge of reports; those of `model` are a sweep's."""

    of: Literal["errors"]  # what the model looks for


def _judge(words: Words) -> int:
    runs = words.open()
    return judge(runs[0], by_others=words.reading == "all") if len(runs) == 1 else judge_together(runs)


def _judge_errors(words: ReadingWords, about_model: Sequence[str]) -> int:
    if not about_model:
        raise InputError(
            "model= is not given; give the entry of conf/model that reads, e.g. model=qwen3_vl_8b"
        )
    return judge_errors(words.open(), about_model)


def judge_errors(run: Run, about_model: Sequence[str]) -> int:
    """Judge the reports, write and print their errors; return 0 if at least one was judged, else 1."""
    from cardiolens.config.sweep_factors import arms
    from cardiolens.curation.asking.ask_texts import asking_spec
    from cardiolens.curation.report_judge.report_errors import document, judge_reports, run_reports
    from cardiolens.protocol.tasks.catalogue import load_catalogue
    from cardiolens.score.run_results.stored_replies import check_stored
    from cardiolens.show.terminal.show import show_report_errors
    from cardiolens.storage import documents

    spec = documents.read_configuration(run)
    check_stored(run)
    reports = run_reports(run, load_catalogue(spec.dataset.protocol))
    if not reports:
        raise InputError(f"{run.root}: {_NO_REPORT}")
    sweep = asking_spec(spec.store, run.root / "judge", spec.dataset.protocol, about_model)
    (model,) = sweep.model
    judgements = judge_reports(sweep, [report.pair for report in reports])
    errors = document(model.name, reports, judgements)
    errors["judges_itself"] = sorted(_own_arms(model, arms(spec)) & errors["arms"].keys())
    path = run.root / f"report_errors-{model.name}.json"
    disk.write_text(path, to_json(errors, indent=1, inf_nan_mode="null").decode() + "\n")
    say(f"written: {path}")
    show_report_errors(errors)
    return 0 if errors["arms"] else 1


def _own_arms(model: Any, sweep_arms: Sequence[Any]) -> set[str]:
    """The arms with texts that the reading model wrote itself."""
    return {
        arm.arm_id
        for arm in sweep_arms
        if arm.model.name == model.name or (arm.model.source and arm.model.source == model.source)
    }


main = verb(
    __name__,
    __doc__,
    Action(Words, _judge),
    Action(ReadingWords, _judge_errors, "a judge of reports", MODEL_OPTIONS),
)
