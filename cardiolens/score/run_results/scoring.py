"""Judge and score a run: completions → verdicts → scores → analyses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.base.phases import begin, phase
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import Arm, arms
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.questions import LESION
from cardiolens.report_text.entities import report_forms
from cardiolens.score.claims.declared import declared_row
from cardiolens.score.claims.parts_of_cohort import Groups, full_minus_part, groups_of
from cardiolens.score.run_results.model_replies import Replies, judge_model
from cardiolens.score.run_results.run_analyses import Analyses, analyses_of, write_analyses
from cardiolens.score.run_results.stored_replies import questions_of
from cardiolens.score.statistics.answers import ArmAnswers
from cardiolens.score.statistics.arm_statistics import field_scopes
from cardiolens.score.statistics.factors import headlines, judged_arms
from cardiolens.score.statistics.scores import Results, compute_scores
from cardiolens.score.statistics.statistic import Row, Settings
from cardiolens.score.verdicts.text_metrics import open_text_metrics
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run, Store
from cardiolens.storage.spool import Spool


@dataclass(frozen=True, slots=True)
class RunResults:
    """The results computed and written from the replies of a run."""

    replies: Replies
    results: Results
    analyses: Analyses

    @property
    def scores(self) -> pa.Table:
        """Load all scores into memory."""
        return self.results.scores.whole()

    @property
    def comparisons(self) -> pa.Table:
        """Load all comparisons into memory."""
        return self.results.comparisons.whole()


def judge_and_write(run: Run, store: Store, model_keys: Mapping[str, str], spec: SweepSpec) -> RunResults:
    """Recompute and write verdicts, scores and analyses of a run from its completions, without engines."""
    replies = judge_replies(run, store, model_keys, spec)
    return write_results(run, replies, groups_of(store.root, replies.verdict_store), arms(spec), spec)


def of_tiers(scores: pa.Table) -> pa.Table:
    """Filter a table of scores to the primary scores on tiers."""
    is_primary = pc.equal(scores["metric"], "primary")
    return scores.filter(pc.and_(is_primary, pc.starts_with(scores["scope"], "tier:")))


def judge_replies(
    run: Run,
    store: Store,
    model_keys: Mapping[str, str],
    spec: SweepSpec,
    questions_digest: str | None = None,
) -> Replies:
    """Judge a run, one model at a time; InputError if its questions do not match `questions_digest`."""
    questions, digest = questions_of(run, store, model_keys, questions_digest)
    _check_subtasks(questions, spec.dataset.protocol)
    metrics = open_text_metrics(spec.statistics)
    models = (
        judge_model(model, run.requests(model), store.completions(key), questions, spec, metrics=metrics)
        for model, key in phase("judging", "models", model_keys.items())
    )
    return Replies.together(models, digest)


def _check_subtasks(questions: pa.Table, protocol: str) -> None:
    """Refuse questions if the protocol lacks the subtask of one."""
    subtasks = load_catalogue(protocol).subtasks
    unknown = questions.filter(pc.invert(pc.is_in(questions["subtask"], pa.array(list(subtasks)))))
    for row in unknown.select(["qa_id", "subtask"]).slice(0, 1).to_pylist():
        raise InputError(
            f"question {row['qa_id']}: subtask {row['subtask']!r} is not in protocol {protocol!r}, which has "
            f"{', '.join(subtasks)}; judge with the questions file of the run, or name its protocol in "
            "dataset.protocol"
        )


def write_results(
    run: Run,
    replies: Replies,
    groups: Groups,
    sweep_arms: Sequence[Arm],
    spec: SweepSpec,
    *,
    parts: Sequence[tuple[Run, SweepSpec]] = (),
    further: Analyses = MappingProxyType({}),
) -> RunResults:
    """Write verdicts, and the scores and analyses computed from them.

    `parts` are the runs that this one joins, each with its configuration, if it joins several; `further` are
    tables of the replies themselves, by name.
    """
    verdicts = replies.verdict_store
    answers = ArmAnswers.of(verdicts, groups.hospitals)
    # twins are other studies: no arm has a question in common with the one that asks about them
    factors = [arm for arm in judged_arms(sweep_arms, answers.arms) if arm.control != LESION]
    catalogue, chosen = load_catalogue(spec.dataset.protocol), spec.statistics
    forms, scopes = report_forms(catalogue), field_scopes(catalogue)
    settings = Settings(chosen.min_n, chosen.resamples, chosen.seed, forms, scopes)
    results = compute_scores(answers, factors, settings)
    results.scores.add(replies.reply_scores)
    models, simulated = headlines(factors), {arm.model for arm in factors if arm.simulated}
    added = [
        row
        for name, part in groups.parts.items()
        for row in full_minus_part(answers, name, part, models, settings, simulated=simulated)
    ]
    added += _declared(parts or [(run, spec)], results.comparisons)
    results.comparisons.add(tables.from_rows(added, schemas.COMPARISONS))
    scores = results.scores.parts()
    of_run = analyses_of(verdicts, answers, scores, factors, groups=groups, settings=settings)
    analyses = {**of_run, **further}
    begin("writing verdicts, scores and analyses")
    if replies.seen.num_rows or run.seen.exists():
        tables.replace(run.seen, replies.seen, schemas.SEEN)
    tables.replace(run.verdicts, verdicts.blocks(), schemas.VERDICTS)
    tables.replace(run.scores, results.scores.parts(), schemas.SCORES)
    tables.replace(run.comparisons, results.comparisons.parts(), schemas.COMPARISONS)
    write_analyses(run, analyses)
    return RunResults(replies, results, analyses)


def _declared(parts: Sequence[tuple[Run, SweepSpec]], comparisons: Spool) -> list[Row]:
    """The row of what the first of some runs declared, if there is one.

    Where another of the runs declared none, or something else, it is not known how many answers were there.
    """
    primary = parts[0][1].primary
    if primary is None:
        return []
    counts = [
        documents.answered_before(run, spec) if spec.primary == primary else None for run, spec in parts
    ]
    answered = None if None in counts else sum(filter(None, counts))
    over_arms = pc.is_null(pc.field("arm_id"))
    rows = [row for part in comparisons.parts() for row in part.filter(over_arms).to_pylist()]
    found = declared_row(primary, answered, rows)
    return [] if found is None else [found]
