"""The last steps of the flow: completions of a run → verdicts → scores → analyses."""

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.config.arms import Arm, arms
from cardiolens.config.sweep import SweepSpec
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.report_text.entities import report_forms
from cardiolens.score.claims.analysis import Analysis
from cardiolens.score.claims.preregistered import Declared
from cardiolens.score.run_results.analyses import analyses_of, write_analyses
from cardiolens.score.run_results.cached_verdicts import digest_of_questions, keep, mark_of, read_kept
from cardiolens.score.run_results.groups import Groups, groups_of
from cardiolens.score.run_results.judged_arms import judged_arms
from cardiolens.score.run_results.model_replies import OnDisk, judge_model, questions_asked
from cardiolens.score.run_results.stages import StageCounts
from cardiolens.score.statistics.arm_answers import Asked
from cardiolens.score.statistics.factors import beside_control, families
from cardiolens.score.statistics.headlines import headlines
from cardiolens.score.statistics.scores import scored
from cardiolens.score.statistics.verdicts import Verdicts
from cardiolens.score.verdicts.text_metrics import open_text_metrics
from cardiolens.storage import tables
from cardiolens.storage.places import Run, Store
from cardiolens.storage.spool import Spool


@dataclass(frozen=True, slots=True)
class Replies:
    """The verdicts of a run, and the counts of its distinct planned requests by ending."""

    judged: Verdicts
    beside: pa.Table  # scores that need requests or completions as well
    questions_digest: str
    seen: pa.Table  # what chains showed their readers
    counts: Mapping[str, int]  # ok, refused, engine_error, missing; completions beyond: agreeing, ...
    stages: Mapping[str, tuple[StageCounts, ...]] = field(default_factory=dict)  # of chains, by model
    in_jobs: tuple[str, ...] = ()  # models whose own jobs judged them

    @property
    def verdicts(self) -> pa.Table:
        """All verdicts in memory."""
        return self.judged.whole()

    @property
    def unfinished(self) -> int:
        return self.counts["engine_error"] + self.counts["missing"]

    @property
    def duplicates(self) -> dict[str, int]:
        """Final completions beyond the one that counts, by whether they say the same."""
        return {name: self.counts[name] for name in ("agreeing", "disagreeing")}

    @property
    def unrequested(self) -> int:
        """Completions in the store that no request of this run has: kept, and ignored."""
        return self.counts["unrequested"]


@dataclass(frozen=True, slots=True)
class RunResults:
    """The results that were written from the replies of a run."""

    replies: Replies
    spool: Spool  # of scores
    analyses: Sequence[Analysis]

    @property
    def scores(self) -> pa.Table:
        """All scores in memory."""
        return self.spool.whole()

    @property
    def of_tiers(self) -> pa.Table:
        """The primary scores of single arms on tiers."""
        return tables.concat(map(of_tiers, self.spool.parts()), tables.SCORES)


def judge_and_write(run: Run, store: Store, model_keys: Mapping[str, str], spec: SweepSpec) -> RunResults:
    """Write verdicts, scores and analyses of a run anew from its completions; no engine is touched."""
    replies = judge_replies(run, store, model_keys, spec, kept=True)
    groups = groups_of(store.root, replies.judged)
    results = write_results(run, replies, groups, arms(spec), spec)
    for model in model_keys:
        shutil.rmtree(run.judged(model), ignore_errors=True)
    return results


def of_tiers(scores: pa.Table) -> pa.Table:
    """The rows of a table of scores that are primary scores of single arms on tiers."""
    single = pc.and_(pc.is_null(scores["versus_arm_id"]), pc.equal(scores["metric"], "primary"))
    return scores.filter(pc.and_(single, pc.starts_with(scores["scope"], "tier:")))


def judge_replies(
    run: Run,
    store: Store,
    model_keys: Mapping[str, str],
    spec: SweepSpec,
    questions_digest: str | None = None,
    *,
    kept: bool = False,
) -> Replies:
    """The verdicts of a run, a model at a time; InputError if its questions are not those of
    `questions_digest`.

    `kept`: what the jobs of models judged is taken over where it still holds.
    """
    asked = {model: questions_asked(run.requests(model)) for model in model_keys}
    qa_ids = pc.unique(pa.concat_arrays(asked.values())) if asked else pa.array([], pa.string())
    questions = _questions(store, qa_ids, spec)
    digest = digest_of_questions(questions)
    if questions_digest not in (None, digest):
        raise InputError(
            f"{store.questions}: the questions of {run.root} have changed since it was judged; put the "
            "questions file of the run back and plan it again (mode=plan), or run the sweep again"
        )
    judged, beside, seen = Verdicts(), [], []
    ended: Counter[str] = Counter()
    stages: dict[str, tuple[StageCounts, ...]] = {}
    in_jobs: list[str] = []
    metrics = open_text_metrics(spec.statistics)
    for model, model_key in model_keys.items():
        of_model = questions.filter(pc.is_in(questions["qa_id"], asked[model]))
        own = OnDisk(model, run.requests(model), store.completions(model_key))
        found = read_kept(run.judged(model), mark_of(own, of_model, spec)) if kept else None
        if found is None:
            found = judge_model(own, of_model, spec, metrics)
        else:
            in_jobs.append(model)
        judged.extend(found.verdicts)
        beside.append(found.beside)
        seen.append(found.seen)
        ended.update(found.counts)
        stages[model] = found.stages
    shown = tables.concat(seen, tables.SEEN)
    every = tables.concat(beside, tables.SCORES)
    return Replies(judged, every, digest, shown, ended, stages, tuple(in_jobs))


def judge_ahead(run: Run, store: Store, model: str, model_key: str, spec: SweepSpec) -> int:
    """Judge one model where its replies were made, and keep that for the score job; returns its verdicts."""
    questions = _questions(store, questions_asked(run.requests(model)), spec)
    own = OnDisk(model, run.requests(model), store.completions(model_key))
    mark = mark_of(own, questions, spec)  # before completions are read
    found = judge_model(own, questions, spec, open_text_metrics(spec.statistics))
    if mark is not None:
        keep(run.judged(model), found, mark)
    return found.verdicts.num_rows


def _questions(store: Store, qa_ids: pa.Array, spec: SweepSpec) -> pa.Table:
    """Questions by their ids; InputError where one is on a subtask that the protocol does not have."""
    questions = tables.read(store.questions, tables.QUESTIONS)
    questions = questions.filter(pc.is_in(questions["qa_id"], qa_ids))
    _check_subtasks(questions, spec.dataset.protocol)
    return questions


def _check_subtasks(questions: pa.Table, protocol: str) -> None:
    """Refuse questions on a subtask that the protocol does not have."""
    known = load_catalogue(protocol).subtasks
    strange = questions.filter(pc.invert(pc.is_in(questions["subtask"], pa.array(list(known)))))
    for row in strange.select(["qa_id", "subtask"]).slice(0, 1).to_pylist():
        raise InputError(
            f"question {row['qa_id']}: subtask {row['subtask']!r} is not in protocol {protocol!r}, which has "
            f"{', '.join(known)}; judge with the questions file of the run, or name its protocol in "
            "dataset.protocol"
        )


def write_results(
    run: Run, replies: Replies, groups: Groups, asked: Sequence[Arm], spec: SweepSpec
) -> RunResults:
    """Write verdicts, and the scores and analyses that follow from them."""
    answers = Asked.of(replies.judged)
    factors = judged_arms(asked, answers.arms)
    forms = report_forms(load_catalogue(spec.dataset.protocol))
    options: dict[str, Any] = dict(spec.statistics.sampling)
    options |= {"gains": beside_control(factors, "blind"), "repeats": beside_control(factors, "repeat")}
    options |= {"headlines": headlines(factors), "forms": forms}
    options["simulated"] = {arm.arm_id for arm in factors if arm.simulated}
    scores = scored(answers, families=families(factors), **options)
    scores.add(replies.beside)
    declared = Declared(**spec.primary.model_dump()) if spec.primary else None
    given = answers, scores.parts(), factors, groups, spec.statistics
    analyses = analyses_of(*given, forms=forms, declared=declared)
    if replies.seen.num_rows or run.seen.exists():
        tables.replace(run.seen, replies.seen, tables.SEEN)
    tables.replace_by(run.verdicts, replies.judged.blocks(), tables.VERDICTS)
    tables.replace_by(run.scores, scores.parts(), tables.SCORES)
    write_analyses(run.analyses, analyses)
    return RunResults(replies, scores, analyses)
