"""Judge and score a run: completions → verdicts → scores → analyses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.phases import begin, phase
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import Arm, arms
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.questions import LESION
from cardiolens.report_text.entities import report_forms
from cardiolens.score.claims.declared import declared_row
from cardiolens.score.claims.parts_of_cohort import Groups, full_minus_part, groups_of
from cardiolens.score.run_results.model_replies import WITH_REPLIES, Replies, judge_model
from cardiolens.score.run_results.run_analyses import Analyses, analyses_of, write_analyses
from cardiolens.score.run_results.stored_replies import questions_of
from cardiolens.score.statistics.arm_statistics import field_scopes
from cardiolens.score.statistics.confidence import confidence_scores
from cardiolens.score.statistics.factors import ArmFactors, arm_factors, control_pairs, headlines
from cardiolens.score.statistics.item_scores import (
    ItemScores,
    lesion_scores,
    open_scores,
    order_scores,
    position_scores,
    table_of,
)
from cardiolens.score.statistics.items import ArmAnswers
from cardiolens.score.statistics.scores import compute_scores
from cardiolens.score.statistics.statistic import Row, Settings
from cardiolens.score.statistics.verdict_rows import Verdicts, cohort
from cardiolens.score.verdicts.text_metrics import open_text_metrics
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run, Store


@dataclass(frozen=True, slots=True)
class RunResults:
    """The results computed and written from the replies of a run."""

    replies: Replies
    scores: pa.Table
    comparisons: pa.Table
    analyses: Analyses


def judge_and_write(run: Run, store: Store, model_keys: Mapping[str, str], spec: SweepSpec) -> RunResults:
    """Recompute and write verdicts, scores and analyses of a run from its completions, without engines."""
    replies = judge_replies(run, store, model_keys, spec)
    groups = groups_of(store.root, cohort(replies.verdict_store))
    return write_results(run, replies, groups, arms(spec), spec)


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


def scores_of_replies(
    verdicts: Verdicts, judged: Sequence[ArmFactors], settings: Settings
) -> Iterator[Sequence[Row]]:
    """Yield scores of option probabilities, open questions and controls, at most two arms in memory."""
    scores = ItemScores.of(settings, cohort(verdicts))
    for arm in sorted(verdicts.arms):
        rows = verdicts.of_arm(arm, WITH_REPLIES.names)
        yield [*confidence_scores(arm, rows, scores), *open_scores(arm, rows, scores)]
    for arm in (arm.arm_id for arm in judged if arm.control == "shuffled_options"):
        yield [*position_scores(arm, verdicts.of_arm(arm, WITH_REPLIES.names), scores)]
    for control, scores_of in (("reversed_options", order_scores), (LESION, lesion_scores)):
        for pair in control_pairs(judged, control):
            rows = pa.concat_tables(verdicts.of_arm(arm, WITH_REPLIES.names) for arm in pair)
            yield [*scores_of(pair, rows, scores)]


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
    judged = [arm for arm in arm_factors(sweep_arms) if arm.arm_id in answers.arms]
    # twins are other studies: no arm has a question in common with the one that asks about them
    factors = [arm for arm in judged if arm.control != LESION]
    catalogue, chosen = load_catalogue(spec.dataset.protocol), spec.statistics
    forms, scopes = report_forms(catalogue), field_scopes(catalogue)
    settings = Settings(chosen.min_n, chosen.resamples, chosen.seed, forms, scopes)
    of_arms, compared = compute_scores(answers, factors, settings)
    begin("scoring replies")
    of_replies = [table_of(rows, answers.shares) for rows in scores_of_replies(verdicts, judged, settings)]
    scores = pa.concat_tables([of_arms, *of_replies])
    models, simulated = headlines(factors), {arm.model for arm in factors if arm.simulated}
    added = [
        row
        for name, part in groups.parts.items()
        for row in full_minus_part(answers, name, part, models, settings, simulated=simulated)
    ]
    added += _declared(parts or [(run, spec)], compared)
    comparisons = pa.concat_tables([compared, tables.from_rows(added, schemas.COMPARISONS)])
    of_run = analyses_of(verdicts, answers, scores, factors, groups=groups, settings=settings)
    analyses = {**of_run, **further}
    begin("writing verdicts, scores and analyses")
    disk.remove(run.analyses)  # without it no one reads a run: killed on the way, its tables would be mixed
    if replies.seen.num_rows or run.seen.exists():
        tables.replace(run.seen, replies.seen, schemas.SEEN)
    tables.replace(run.verdicts, verdicts.blocks(), schemas.VERDICTS)
    tables.replace(run.scores, scores, schemas.SCORES)
    tables.replace(run.comparisons, comparisons, schemas.COMPARISONS)
    write_analyses(run, analyses)
    return RunResults(replies, scores, comparisons, analyses)


def _declared(parts: Sequence[tuple[Run, SweepSpec]], comparisons: pa.Table) -> list[Row]:
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
    rows = comparisons.filter(pc.is_null(comparisons["arm_id"])).to_pylist()
    found = declared_row(primary, answered, rows)
    return [] if found is None else [found]
