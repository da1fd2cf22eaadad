"""After a sweep on MedThinkVQA: `python jobs/medthinkvqa.py scores run=outputs/...` prints accuracy by group
of cases, `... submit run=outputs/... arm=<arm_id> out=<file>` writes the submission of one arm,
`... check file=<file> root=<data> [split=test]` checks one line by line and gives ROUGE-L of its steps,
`... discussions run=outputs/... arm=<arm_id> out=<file>` writes the case discussions of one arm, and
`... judge steps=<file> root=<data> out=<folder> model=<name> [split=test]` has a model judge reasoning.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc

from cardiolens.base import disk
from cardiolens.base.errors import InputError, RunError
from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.judges import (
    ERRORS,
    Reasoning,
    StepVerdict,
    judged_line,
    read_reasoning,
    read_verdicts,
    requests,
)
from cardiolens.benchmarks.medthinkvqa import MAP, records, source_of, submission_problems, write_submission
from cardiolens.commands.command import begin_job, print_error
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import MODEL_OPTIONS, check_once, read_words, split_words
from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.asking.ask_texts import ask, asking_spec
from cardiolens.protocol.prompts.case_prompts import sections_of
from cardiolens.protocol.prompts.text_request import TextRequest
from cardiolens.score.run_results.case_results import (
    case_scores,
    discussions_by_case,
    responses_by_case,
    rouge_l,
    step_overlap,
)
from cardiolens.score.statistics.bootstrap import Interval, cluster_interval, cluster_weights
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import ratio, weighted_agreement
from cardiolens.storage import schemas, tables
from cardiolens.storage.documents import read_configuration, read_manifest
from cardiolens.storage.places import Run, Store
from cardiolens.storage.run_place import RunWord
from cardiolens.study.cohort import read_cohort

_MOST_SHOWN = 20  # mistakes of a submission that are printed


JudgedSteps = tuple[StepVerdict, ...] | None

_DIFFERENT = 1.0 - np.eye(2)


def _has(error: str, step: StepVerdict) -> bool | None:
    return None if step.error_types is None else error in step.error_types


_LABELS: dict[str, Callable[[StepVerdict], bool | None]] = {
    "is_factual": lambda step: step.is_factual,
    "is_critical": lambda step: step.is_critical,
    **{f"error: {name}": partial(_has, name) for name in ERRORS},
}


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """Agreement on one label, with 95 % intervals over cases; NaN if undefined."""

    label: str
    n_steps: int
    n_cases: int
    n_given: int  # steps of which the others say it
    n_judge: int
    accuracy: Interval  # share of steps on which both say the same
    mcc: Interval
    kappa: Interval


def agreement(reasonings: Sequence[Reasoning], judgements: Sequence[JudgedSteps]) -> Iterator[LabelAgreement]:
    """Yield the agreement on every label, over the steps with verdicts of both the others and the judge.

    A step is left out of a kind of error where one of both did not say what is wrong with it.
    """
    pairs = [
        (judgement.case, given, judge)
        for judgement, verdicts in zip(reasonings, judgements, strict=True)
        if judgement.given is not None and verdicts is not None
        for given, judge in zip(judgement.given, verdicts, strict=True)
        if given is not None
    ]
    for label, of in _LABELS.items():
        said = [(case, of(given), of(judge)) for case, given, judge in pairs]
        yield _agreement(label, [(case, one, two) for case, one, two in said if None not in (one, two)])


def _agreement(label: str, said: Sequence[tuple[int, bool | None, bool | None]]) -> LabelAgreement:
    places = {case: place for place, case in enumerate(sorted({case for case, _, _ in said}))}
    weights = cluster_weights(len(places))
    table = np.zeros((len(places), 2, 2))  # case, others, judge
    for case, given, judge in said:
        table[places[case], int(bool(given)), int(bool(judge))] += 1
    counts: Floats = np.einsum("rp,pij->rij", weights, table)
    total = counts[0]
    shares = ratio(np.trace(counts, axis1=-2, axis2=-1), counts.sum(axis=(-2, -1)))
    return LabelAgreement(
        label=label,
        n_steps=len(said),
        n_cases=len(places),
        n_given=int(total[1].sum()),
        n_judge=int(total[:, 1].sum()),
        accuracy=cluster_interval(shares, len(places)),
        mcc=cluster_interval(_mcc(counts), len(places)),
        kappa=cluster_interval(weighted_agreement(counts, _DIFFERENT), len(places)),
    )


def _mcc(counts: Floats) -> Floats:
    """Return Matthews' correlation of tables (..., 2, 2); NaN if one side has a single class."""
    (no_no, no_yes), (yes_no, yes_yes) = np.moveaxis(counts, (-2, -1), (0, 1))
    rows, columns = counts.sum(axis=-1), counts.sum(axis=-2)
    spread = np.sqrt(rows[..., 0] * rows[..., 1] * columns[..., 0] * columns[..., 1])
    return ratio(no_no * yes_yes - no_yes * yes_no, spread)


class Submit(RunWord):
    """Words of `submit`."""

    arm: str  # the arm_id
    out: GivenPath  # the submission


class Discussions(RunWord):
    """Words of `discussions`."""

    arm: str  # the arm_id
    out: GivenPath  # the file of discussions


class FromData(Spec):
    """Words that name the cases of MedThinkVQA."""

    root: GivenPath  # the folder of the data
    split: Literal["train", "test"] = "test"

    @property
    def source(self) -> Source:
        return source_of(self.root, self.split)


class Check(FromData):
    """Words of `check`."""

    file: GivenPath  # a submission


class Judge(FromData):
    """Words of `judge`, beside those of a model."""

    steps: GivenPath  # a file of reasoning steps
    out: GivenPath  # the folder of the verdicts


def main(argv: list[str]) -> int:
    """Do one of the five; return 2 if the input is wrong, 1 if a submission has mistakes, else 0."""
    begin_job(argv, __doc__)
    name, *words = argv or [""]
    try:
        if name in _BY_MODEL:
            asking, ask = _BY_MODEL[name]
            own, about_model = split_words(asking, words, MODEL_OPTIONS)
            check_once(about_model)
            if not about_model:
                raise InputError("model= is not given; give the entry of conf/model that judges")
            return ask(own, about_model)
        if name not in _ACTIONS:
            raise InputError(f"{name or 'no action'}: give one of {', '.join([*_ACTIONS, *_BY_MODEL])}")
        kind, action = _ACTIONS[name]
        return action(read_words(kind, words))
    except (InputError, RunError) as error:
        return print_error(error)


def _scores(words: RunWord) -> int:
    run = words.open()
    spec = read_configuration(run)
    cohort = read_cohort(spec.store)
    if cohort is None or spec.dataset.map != MAP:
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
    run, spec, model = _arm_of(words)
    verdicts = tables.read(run.verdicts, schemas.VERDICTS, ("arm_id", "study_id", "parsed"))
    rows = verdicts.filter(pc.equal(verdicts["arm_id"], words.arm)).to_pylist()
    read = {row["study_id"]: row["parsed"][0] for row in rows if row["parsed"]}
    said = responses_by_case(run.requests(model), _completions(run, spec, model), words.arm)
    write_submission(words.out, _source_of(spec), read, said)
    in_steps = [one for one in said.values() if one.summary is not None]
    unsplit = sum(one.images is None for one in in_steps)
    if unsplit:
        print(f"step 1 left out of {unsplit} of {len(in_steps)} cases: not one description per image shown")
    print(f"submission: {words.out}")
    return 0


def _discussions(words: Discussions) -> int:
    run, spec, model = _arm_of(words)
    (prompt,) = [prompt for prompt in spec.prompt if prompt.name == _manifest_arm(run, words.arm)["prompt"]]
    if prompt.steps != "discussion":
        raise InputError(
            f"arm={words.arm}: prompt {prompt.name} writes no case discussion; choose an arm with "
            "steps: discussion, such as prompt=[discussion]"
        )
    written = discussions_by_case(run.requests(model), _completions(run, spec, model), words.arm)
    source, lines, overlaps = _source_of(spec), [], []
    for number, record in records(source):
        if (one := written.get(source.name_of(number))) is None:
            continue
        lines.append(json.dumps({"case": number, "discussion": one.text}, ensure_ascii=False) + "\n")
        if record.get("discussion"):
            overlaps.append(rouge_l(str(record["discussion"]), one.text))
    disk.write_text(words.out, "".join(lines))
    unsplit = sum(sections_of(one.text) is None for one in written.values())
    cut = sum(one.is_cut for one in written.values())
    print(
        f"discussions: {len(lines)} cases; {unsplit} without the six sections, {cut} cut at the token limit"
    )
    mean = f"{np.mean(overlaps):.3f}" if overlaps else "none"
    print(f"ROUGE-L against the discussions of the data: {mean} over {len(overlaps)} cases")
    print(f"written: {words.out}")
    return 0


def _arm_of(words: Submit | Discussions) -> tuple[Run, SweepSpec, str]:
    """Open the run of an arm; return it with its configuration and the name of the arm's model."""
    run = words.open()
    spec = read_configuration(run)
    _source_of(spec, words.run)
    arms = [one["arm_id"] for one in read_manifest(run)["arms"]]
    if words.arm not in arms:
        raise InputError(f"arm={words.arm}: is not in the run; choose from {', '.join(sorted(arms))}")
    return run, spec, _manifest_arm(run, words.arm)["model"]


def _manifest_arm(run: Run, arm: str) -> dict[str, Any]:
    (entry,) = [one for one in read_manifest(run)["arms"] if one["arm_id"] == arm]
    return dict(entry)


def _completions(run: Run, spec: SweepSpec, model: str) -> Path:
    return Store(spec.store).completions(read_manifest(run)["models"][model]["model_key"])


def _source_of(spec: SweepSpec, run: Path | None = None) -> Source:
    if spec.dataset.map != MAP or spec.dataset.source is None:
        raise InputError(f"run={run}: is no run on MedThinkVQA; give one of dataset=medthinkvqa")
    return source_of(spec.dataset.source, spec.dataset.split)


def _check(words: Check) -> int:
    path = words.file
    problems = list(submission_problems(path, words.source))
    for problem in problems[:_MOST_SHOWN]:
        print(problem)
    if problems:
        print(f"{len(problems)} mistakes")
        return 1
    written = [
        (record, record.get("prediction_twi"))
        for _, record in records(replace(words.source, root=path.parent, files=(path,)))
    ]
    pairs = [step_overlap(record, steps) for record, steps in written if isinstance(steps, dict)]
    print(json.dumps({"lines": len(written), "with_steps": len(pairs)}))
    for place, name in enumerate(("step 1", "step 2")):
        values = [pair[place] for pair in pairs if not np.isnan(pair[place])]
        print(
            f"ROUGE-L of {name}: {np.mean(values):.3f} over {len(values)} cases"
            if values
            else f"{name}: none"
        )
    return 0


def _judge(words: Judge, about_model: list[str]) -> int:
    source, out = words.source, words.out
    written = read_reasoning(words.steps, source)
    asked = requests(source, written)
    name, replies = _replies(out, asked, about_model)
    judged = [read_verdicts(reply, len(one.steps)) for one, reply in zip(written, replies, strict=True)]
    path = out / f"steps-{name}.jsonl"
    disk.write_text(path, "".join(map(judged_line, written, judged)))
    print(f"judged: {len(judged) - judged.count(None)} of {len(written)} lines; others have no legal reply")
    _print_agreement(written, judged)
    print(f"verdicts: {path}")
    return 0 if len(judged) > judged.count(None) else 1


def _replies(out: Path, asked: list[TextRequest], about_model: list[str]) -> tuple[str, list[str | None]]:
    """Have a model answer requests about texts; return its name and its replies."""
    sweep = asking_spec(out / "store", out / "judge", "openprotocol-1", about_model)
    return sweep.model[0].name, ask(sweep, asked)


def _print_agreement(written: list[Reasoning], judged: list[JudgedSteps]) -> None:
    """Print the agreement of the judge with those who gave the file's verdicts, label by label."""
    by = written[0].by
    given = [verdict for one in written for verdict in one.given or ()]
    if given.count(None):
        print(f"no verdict: {given.count(None)} of {len(given)} steps, which {by} left out")
    labels = list(agreement(written, judged))
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
    "discussions": (Discussions, _discussions),
}
_BY_MODEL: Mapping[str, tuple[type[Spec], Callable[[Any, list[str]], int]]] = {
    "judge": (Judge, _judge),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
