"""After a sweep on MedThinkVQA: `python jobs/medthinkvqa.py scores run=outputs/...` prints accuracy by group
of cases, `... submit run=outputs/... arm=<arm_id> out=<file>` writes the submission of one arm,
`... check file=<file> root=<data> [split=test]` checks one line by line and gives ROUGE-L of its steps, and
`... judge steps=<file> root=<data> out=<folder> model=<name> [split=test]` has a model judge reasoning.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc

from cardiolens.base import disk
from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import MODEL_OPTIONS, check_once, read_words, split_words
from cardiolens.curation.questions.model_extraction import asking_spec, execute_plan, plan_texts, replies_of
from cardiolens.curation.questions.reasoning import Reasoning
from cardiolens.curation.questions.reasoning_agreement import JudgedSteps, agreement
from cardiolens.curation.questions.reasoning_files import read_reasoning
from cardiolens.curation.questions.reasoning_judge import judged_line, read_verdicts, requests
from cardiolens.curation.questions.step_verdict import Form
from cardiolens.protocol.medthinkvqa.case_submission import submission_problems, write_submission
from cardiolens.protocol.medthinkvqa.files import Source, records
from cardiolens.score.run_results.case_rationales import responses_by_case
from cardiolens.score.run_results.case_scores import case_scores, step_overlap
from cardiolens.score.statistics.bootstrap import Interval
from cardiolens.storage import schemas, tables
from cardiolens.storage.documents import read_configuration, read_manifest
from cardiolens.storage.places import Store
from cardiolens.storage.run_word import RunWord
from cardiolens.study.cohort import read_cohort

_MOST_SHOWN = 20  # mistakes of a submission that are printed


class Submit(RunWord):
    """Words of `submit`."""

    arm: str  # the arm_id
    out: GivenPath  # the submission


class FromData(Spec):
    """Words that name the cases of MedThinkVQA."""

    root: GivenPath  # the folder of the data
    split: Literal["train", "test"] = "test"

    @property
    def source(self) -> Source:
        return Source.of(self.root, self.split)


class Check(FromData):
    """Words of `check`."""

    file: GivenPath  # a submission


class Judge(FromData):
    """Words of `judge`, beside those of a model."""

    steps: GivenPath  # a file of reasoning steps
    out: GivenPath  # the folder of the verdicts
    judge: Form = "own"  # published: shown and asked as the judge of MedThinkVQA's makers


def main(argv: list[str]) -> int:
    """Do one of the four; return 2 if the input is wrong, 1 if a submission has mistakes, else 0."""
    begin()
    name, *words = argv or [""]
    try:
        if name == "judge":
            own, about_model = split_words(Judge, words, MODEL_OPTIONS)
            check_once(about_model)
            return _judge(own, about_model)
        if name not in _ACTIONS:
            raise InputError(f"{name or 'no action'}: give one of {', '.join([*_ACTIONS, 'judge'])}")
        kind, action = _ACTIONS[name]
        return action(read_words(kind, words))
    except (InputError, RunError) as error:
        return tell(error)


def _scores(words: RunWord) -> int:
    run = words.open()
    spec = read_configuration(run)
    cohort = read_cohort(spec.store)
    if cohort is None or spec.dataset.root is None:
        raise InputError(f"run={words.run}: is no run on MedThinkVQA; give one of dataset=medthinkvqa")
    verdicts, options = tables.read(run.verdicts, schemas.VERDICTS), spec.statistics
    print("arm\tattribute\tgroup\taccuracy\tlow\thigh\tcases\tright\tunread")
    for one in case_scores(verdicts, cohort, resamples=options.resamples, seed=options.seed):
        numbers = (one.accuracy, one.low, one.high)
        shown = "\t".join("" if np.isnan(number) else f"{number:.1f}" for number in numbers)
        print(
            f"{one.arm_id}\t{one.attribute}\t{one.group}\t{shown}\t{one.n_cases}\t{one.n_right}\t{one.n_unread}"
        )
    return 0


def _submit(words: Submit) -> int:
    run = words.open()
    spec = read_configuration(run)
    if spec.dataset.root is None:
        raise InputError(f"run={words.run}: is no run on MedThinkVQA; give one of dataset=medthinkvqa")
    verdicts = tables.read(run.verdicts, schemas.VERDICTS, ("arm_id", "study_id", "parsed"))
    arms = pc.unique(verdicts["arm_id"]).to_pylist()
    if words.arm not in arms:
        raise InputError(f"arm={words.arm}: is not in the run; choose from {', '.join(sorted(arms))}")
    rows = verdicts.filter(pc.equal(verdicts["arm_id"], words.arm)).to_pylist()
    read = {row["study_id"]: row["parsed"][0] for row in rows if row["parsed"]}
    manifest = read_manifest(run)
    (model,) = [one["model"] for one in manifest["arms"] if one["arm_id"] == words.arm]
    completions = Store(spec.store).completions(manifest["models"][model]["model_key"])
    said = responses_by_case(run.requests(model), completions, words.arm)
    write_submission(words.out, Source.of(spec.dataset.root, spec.dataset.split), read, said)
    in_steps = [one for one in said.values() if one.summary is not None]
    unsplit = sum(one.images is None for one in in_steps)
    if unsplit:
        print(f"step 1 left out of {unsplit} of {len(in_steps)} cases: not one description per image shown")
    print(f"submission: {words.out}")
    return 0


def _check(words: Check) -> int:
    path = words.file
    problems = list(submission_problems(path, words.source))
    for problem in problems[:_MOST_SHOWN]:
        print(problem)
    if problems:
        print(f"{len(problems)} mistakes")
        return 1
    told = [
        (record, record.get("prediction_twi")) for _, record in records(Source(path.parent, path, "test"))
    ]
    pairs = [step_overlap(record, steps) for record, steps in told if isinstance(steps, dict)]
    print(json.dumps({"lines": len(told), "with_steps": len(pairs)}))
    for place, name in enumerate(("step 1", "step 2")):
        values = [pair[place] for pair in pairs if not np.isnan(pair[place])]
        print(
            f"ROUGE-L of {name}: {np.mean(values):.3f} over {len(values)} cases"
            if values
            else f"{name}: none"
        )
    return 0


def _judge(words: Judge, about_model: list[str]) -> int:
    if not about_model:
        raise InputError("model= is not given; give the entry of conf/model that judges")
    source, out, form = words.source, words.out, words.judge
    told = read_reasoning(words.steps, source)
    sweep = asking_spec(out / "store", out / "judge", "openprotocol-1", about_model)
    asked = requests(source, told, form)
    planned = plan_texts(sweep, [[one] for one in asked])
    execute_plan(planned)
    replies = zip(told, replies_of(planned, asked), strict=True)
    judged = [read_verdicts(reply, len(one.steps), form) for one, reply in replies]
    kind = "" if form == "own" else f"-{form}"
    path = out / f"steps-{sweep.model[0].name}{kind}.jsonl"
    disk.write_text(path, "".join(map(judged_line, told, judged)))
    print(f"judged: {len(judged) - judged.count(None)} of {len(told)} lines; others have no legal reply")
    _print_agreement(told, judged)
    print(f"verdicts: {path}")
    return 0 if len(judged) > judged.count(None) else 1


def _print_agreement(told: list[Reasoning], judged: list[JudgedSteps]) -> None:
    """Print the agreement of the judge with those whose verdicts the file holds, label by label."""
    by = told[0].by
    given = [verdict for one in told for verdict in one.given or ()]
    if given.count(None):
        print(f"no verdict: {given.count(None)} of {len(given)} steps, which {by} left out")
    labels = list(agreement(told, judged))
    if not labels[0].n_steps:
        print(f"agreement: none, because no step was judged by {by} and by the model")
        return
    print(f"label\tsteps\tcases\tby {by}\tby judge\taccuracy\tMCC\tkappa")
    for one in labels:
        counts = (one.n_steps, one.n_cases, one.n_given, one.n_judge)
        print(one.label, *counts, *map(_interval, (one.accuracy, one.mcc, one.kappa)), sep="\t")


def _interval(of: Interval) -> str:
    """Format a value with its 95 % interval; an undefined value is empty."""
    if np.isnan(of.value):
        return ""
    return f"{of.value:.2f}" + ("" if np.isnan(of.low) else f" ({of.low:.2f} to {of.high:.2f})")


_ACTIONS: Mapping[str, tuple[type[Spec], Callable[[Any], int]]] = {
    "scores": (RunWord, _scores),
    "submit": (Submit, _submit),
    "check": (Check, _check),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
