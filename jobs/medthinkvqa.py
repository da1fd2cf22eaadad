"""After a sweep on MedThinkVQA: `python jobs/medthinkvqa.py scores run=outputs/...` prints accuracy by group
of cases, `... submit run=outputs/... arm=<arm_id> out=<file>` writes the submission of one arm,
`... check file=<file> root=<data> [split=test]` checks one line by line and gives ROUGE-L of its steps, and
`... judge steps=<file> root=<data> out=<folder> model=<name> [split=test]` has a model judge reasoning.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base import disk
from cardiolens.base.errors import InputError
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
from cardiolens.benchmarks.medthinkvqa import (
    MAP,
    CaseResponse,
    field_of,
    records,
    source_of,
    submission_problems,
    write_submission,
)
from cardiolens.commands.command import Action, verb
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import MODEL_OPTIONS
from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.asking.ask_texts import ask, asking_spec
from cardiolens.protocol.dialogue.chain import SAMPLED, Steps
from cardiolens.protocol.dialogue.chain_tables import Step, read_chains, walk
from cardiolens.protocol.prompts.question import TextRequest
from cardiolens.score.statistics.bootstrap import (
    FEWEST_FOR_INTERVAL,
    Interval,
    cluster_interval,
    cluster_weights,
    percentile,
    resampling_weights,
)
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import ratio, weighted_agreement
from cardiolens.score.verdicts.text_metrics import common_subsequence, tokens
from cardiolens.storage import schemas, tables
from cardiolens.storage.documents import read_configuration, read_manifest
from cardiolens.storage.places import Run, RunWord, Store
from cardiolens.storage.schemas import ASKED_BACK, COMPLETIONS, REQUESTS
from cardiolens.study.cohort import Cohort, read_cohort

_MOST_SHOWN = 20  # mistakes of a submission that are printed


FEWEST = 5  # cases of a group whose accuracy is given
ALL = "all"
_HEADING = re.compile(r"^[ \t>*#-]*image[ \t]+#?(\d+)[ \t*]*[:.)–-][ \t*]*", re.IGNORECASE | re.MULTILINE)
_BARE_LETTER = re.compile(r"\W*(?:(?:final )?answer(?: is)?\b)?\W*[A-E]\W*", re.IGNORECASE)


def responses_by_case(requests: Path, completions: Path, arm_id: str) -> dict[str, CaseResponse]:
    """Return the responses of one arm by study; a case without a reply has no entry.

    The steps come from chains: the first two replies describe the images and summarise them.
    """
    rows = {row["request_key"]: row for row in _requests(requests, arm_id)}
    columns = ("request_key", "text", "finish_reason", "status")
    replies = {
        row["request_key"]: row
        for row in tables.read(completions, COMPLETIONS, columns).to_pylist()
        if row["request_key"] in rows and row["status"] == "ok"
    }
    stages: dict[str, list[str]] = {}
    for step, text in _answered_steps(requests, completions, rows):
        stages.setdefault(step.chain, []).append(text)
    return {
        row["study_id"]: _case_response(row["frames"], replies[key], stages.get(key, []))
        for key, row in rows.items()
        if key in replies
    }


def _requests(requests: Path, arm_id: str) -> list[dict[str, Any]]:
    rows = tables.read(requests, REQUESTS, ("arm_id", "study_id", "frames", "request_key"))
    of_arm: list[dict[str, Any]] = rows.filter(pc.equal(rows["arm_id"], arm_id)).to_pylist()
    return of_arm


def _answered_steps(
    requests: Path, completions: Path, keys: Mapping[str, object]
) -> Iterator[tuple[Step, str]]:
    """Yield the answered steps of some chains, each with its text."""
    chains = {key: chain for key, chain in read_chains(requests).items() if key in keys}
    for step in walk({key: chain for key, chain in chains.items() if isinstance(chain, Steps)}, completions):
        if step.completion is not None and step.completion["status"] == "ok":
            yield step, str(step.completion["text"] or "")


def _case_response(
    frames: Sequence[Mapping[str, Any]], reply: Mapping[str, Any], stages: Sequence[str]
) -> CaseResponse:
    words = "" if reply["finish_reason"] == SAMPLED else explanation_of(reply["text"] or "")
    if len(stages) != 3:  # images, summary, answer
        return CaseResponse(words)
    descriptions = by_image(stages[0], len(frames))
    slots = [frame["idx"] + 1 for frame in frames]
    return CaseResponse(
        words, None if descriptions is None else dict(zip(slots, descriptions, strict=True)), stages[1]
    )


def by_image(text: str, n_images: int) -> list[str] | None:
    """Split a text at its `Image 1:` headings into one description per image; None if they do not match.

    Lines without a heading belong to the image before. A single image needs no heading.
    """
    headings = list(_HEADING.finditer(text))
    if n_images == 1 and not headings:
        return [text.strip()] if text.strip() else None
    if [int(heading[1]) for heading in headings] != list(range(1, n_images + 1)):
        return None
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    return [text[heading.end() : end].strip() for heading, end in zip(headings, ends, strict=True)]


def explanation_of(text: str) -> str:
    """Return the explanation in a reply: of JSON its `explanation`, of a bare letter the empty string."""
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) and "answer" in parsed:
        return str(parsed.get("explanation") or "")
    return "" if _BARE_LETTER.fullmatch(text) else text.strip()


@dataclass(frozen=True, slots=True)
class CaseScore:
    """Accuracy of one arm on one group of cases, in percent with a 95 % interval; NaN where undefined."""

    arm_id: str
    attribute: str
    group: str
    accuracy: float
    low: float
    high: float
    n_cases: int
    n_right: int
    n_unread: int  # replies that could not be read, which count as wrong


def case_scores(verdicts: pa.Table, cohort: Cohort, *, resamples: int, seed: int) -> Iterator[CaseScore]:
    """Accuracy of every arm on all cases and on each group; the bootstrap resamples cases.

    A requested case without a judged reply counts as wrong, as in the benchmark. A group of fewer than FEWEST
    cases has no accuracy.
    """
    answers = verdicts.filter(pc.equal(verdicts["channel"], "answer"))
    for arm in sorted(pc.unique(answers["arm_id"]).to_pylist()):
        groups: dict[tuple[str, str], list[tuple[bool, bool]]] = {(ALL, ALL): []}
        for row in answers.filter(pc.equal(answers["arm_id"], arm)).sort_by("study_id").to_pylist():
            case = bool(row["correct"]), row["parse_status"] not in ("ok", ASKED_BACK)
            for group in ((ALL, ALL), *cohort.studies[row["study_id"]].subgroups.items()):
                groups.setdefault(group, []).append(case)
        for (attribute, name), cases in sorted(
            groups.items(), key=lambda entry: (entry[0][0] != ALL, entry[0])
        ):
            count, hits, n_unread = len(cases), *map(sum, zip(*cases, strict=True))
            accuracy = Interval(100 * hits / count if count >= FEWEST else math.nan, math.nan, math.nan)
            if count >= FEWEST_FOR_INTERVAL:
                right = np.array([is_right for is_right, _ in cases])
                values = 100 * (resampling_weights(count, resamples, seed) @ right) / count
                accuracy = percentile(values, patients=count)
            ends = accuracy.value, accuracy.low, accuracy.high
            yield CaseScore(arm, attribute, name, *ends, count, hits, n_unread)


def rouge_l(reference: str, text: str) -> float:
    """ROUGE-L (Lin 2004): F1 of the longest common subsequence of words, 0..1; 0 if a text has no words."""
    reference_words, words = tokens(reference), tokens(text)
    common = common_subsequence(reference_words, words)
    return 2 * common / (len(reference_words) + len(words)) if common else 0.0


def step_overlap(record: Mapping[str, object], steps: Mapping[str, object]) -> tuple[float, float]:
    """ROUGE-L of step 1 (mean over images with a caption) and of step 2; NaN if either text is missing."""
    descriptions = steps.get("step1_per_image_findings")
    texts = list(map(str, descriptions)) if isinstance(descriptions, list) else []
    captions = [record.get(field_of(number, "caption")) for number in range(1, len(texts) + 1)]
    found = [rouge_l(str(caption), text) for caption, text in zip(captions, texts, strict=True) if caption]
    findings, summary = record.get("IMAGING_FINDINGS"), steps.get("step2_integrated_summary")
    second = rouge_l(str(findings), str(summary)) if findings and summary is not None else math.nan
    return float(np.mean(found)) if found else math.nan, second


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


def _arm_of(words: Submit) -> tuple[Run, SweepSpec, str]:
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
    if not about_model:
        raise InputError("model= is not given; give the entry of conf/model that judges")
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


main = verb(
    __name__,
    __doc__,
    Action(RunWord, _scores, "scores"),
    Action(Submit, _submit, "submit"),
    Action(Check, _check, "check"),
    Action(Judge, _judge, "judge", MODEL_OPTIONS),
)
