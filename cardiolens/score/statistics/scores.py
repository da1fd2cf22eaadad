"""From verdicts to the tables of scores and of comparisons."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from cardiolens.base.phases import begin, phase
from cardiolens.runtime.processes import spread
from cardiolens.score.statistics.answers import Answers, ArmAnswers, of_fields
from cardiolens.score.statistics.arm_statistics import arm_statistics, item_mean
from cardiolens.score.statistics.bootstrap import resampling_weights
from cardiolens.score.statistics.comparisons import Comparisons
from cardiolens.score.statistics.counting import EXTRA_METRICS, Key
from cardiolens.score.statistics.differences import MANY, Families, compare_pairs
from cardiolens.score.statistics.factors import ArmFactors, ArmPair, control_pairs, factors_of, families
from cardiolens.score.statistics.headlines import METRICS, headline_results, headlines
from cardiolens.score.statistics.pooled import PooledEffects, add_collapse, pooled_rows, tier_change_rows
from cardiolens.score.statistics.pooled_questions import collapse_questions, pooled_questions
from cardiolens.score.statistics.references import Forms
from cardiolens.score.statistics.statistic import TIERS, Basis, Resampling, Scopes, Statistic, as_row
from cardiolens.score.statistics.verdict_rows import SpilledMapping, Verdicts, percent_judged
from cardiolens.storage.schemas import COMPARISONS, SCORES
from cardiolens.storage.spool import Spool
from cardiolens.storage.tables import concat, from_rows

ANSWERS_CHANGED = "answers_changed"
_AT_ONCE = 16_384  # rows per part of the table
_CLAIMED = frozenset((metric, tier) for metric in ("primary", *EXTRA_METRICS) for tier in TIERS)
_OF_HEADLINES = frozenset((metric, tier) for metric in METRICS for tier in TIERS)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of scoring: least items of a subtask, resamples, their seed, and what the protocol adds."""

    min_n: int
    resamples: int
    seed: int
    forms: Forms = field(default_factory=dict)
    scopes: Scopes = field(default_factory=dict)
    swaps: int = 10_000


@dataclass(frozen=True, slots=True)
class Results:
    """The tables of scores and of comparisons, spilled to files."""

    scores: Spool
    comparisons: Spool

    @property
    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Both tables in memory."""
        return self.scores.whole(), concat(self.comparisons.parts(), COMPARISONS).combine_chunks()


def score(verdicts: pa.Table | Verdicts, arms: Sequence[ArmFactors], settings: Settings) -> Results:
    """Score verdicts of some arms."""
    return compute_scores(ArmAnswers.of(verdicts), arms, settings)


def compute_scores(
    answers: ArmAnswers, arms: Sequence[ArmFactors], settings: Settings, pairs: Families | None = None
) -> Results:
    """Score every arm with 95 % intervals, headlines of models, and compare what differs in one factor.

    `arms` are those that have verdicts, `pairs` those that are compared, in place of all that differ in one
    factor. Of an arm and its repeat there is `answers_changed`. Simulated readers are families of tests of
    their own, and are not compared in headlines.

    Values are percent, save those of `statistic.OWN_UNIT`. Items that were not run are left out. Rows of arms
    are sorted by (arm, scope, metric); neither order nor parts of verdicts change a digit.
    """
    weights = resampling_weights(len(answers.patients), settings.resamples, settings.seed, answers.hospitals)
    sampling = Resampling(
        *(weights, settings.min_n, settings.seed, settings.forms, settings.scopes, settings.swaps),
        of_hospitals=answers.hospitals is not None,
    )
    of_models = headlines(arms)
    simulated = {arm.arm_id for arm in arms if arm.simulated}
    of_headlines = {arm for model in of_models.values() for arm_ids in model.values() for arm in arm_ids}
    table, comparisons = _Table(), Comparisons()
    by_arm, headline_statistics = _score_arms(answers, of_headlines, sampling, table)
    collapse = collapse_questions(of_models, simulated)
    questions = [*pooled_questions(arms), *collapse]
    effects = PooledEffects(questions)
    add_collapse(effects, collapse, headline_statistics, of_models)
    compared = families(arms) if pairs is None else pairs
    n_pairs = sum(map(len, compared.values()))
    options: dict[str, Any] = {"pooled": effects.pairs}
    compared_pairs = compare_pairs(answers, by_arm, compared, sampling, factors_of(arms), **options)
    for pair in phase("comparing", "pairs of arms", compared_pairs, n_pairs):
        comparisons.add(pair.rows)
        effects.add(pair)
    begin("pooling over models")
    comparisons.add(pooled_rows(questions, effects, sampling))
    table.add(_repeat_rows(answers, control_pairs(arms, "repeat"), sampling))
    begin("comparing models")
    results = headline_results(answers, headline_statistics, of_models, sampling, simulated)
    table.add(results.rows)
    comparisons.add(results.comparisons)
    comparisons.add(tier_change_rows(results.means, sampling.method))
    begin("adjusting tests")
    spool = Spool(COMPARISONS)
    for part in comparisons.parts():
        spool.add(part)
    return Results(table.whole(), spool)


_ByArm = SpilledMapping[dict[Key, Statistic]]


def _score_arms(
    answers: ArmAnswers, of_headlines: AbstractSet[str], sampling: Resampling, table: "_Table"
) -> tuple[_ByArm, _ByArm]:
    """Add the rows of every arm; return the statistics that are compared, and those of headlines, by arm."""
    by_arm, headline_statistics = _ByArm(), _ByArm()
    tasks = (_Task(arm, arm_answers, sampling) for arm, arm_answers in answers.judged.items())
    many = len(answers.arms) * sampling.weights.size >= MANY
    for scores in phase("scoring", "arms", spread(_of_arm, tasks, worth=many), len(answers.arms)):
        by_arm[scores.arm] = scores.compared
        if scores.arm in of_headlines:
            headline_statistics[scores.arm] = scores.of_headlines
        shares = answers.shares
        table.add(
            row | {"percent_judged": percent_judged(shares, scores.arm, row["scope"])} for row in scores.rows
        )
    return by_arm, headline_statistics


@dataclass(frozen=True, slots=True)
class _Task:
    """An arm to score, in this or a worker process."""

    arm: str
    answers: Answers
    sampling: Resampling


@dataclass(frozen=True, slots=True)
class _ArmScores:
    """The score rows of one arm, and the statistics that comparisons and headlines need."""

    arm: str
    rows: list[dict[str, Any]]
    compared: dict[Key, Statistic]
    of_headlines: dict[Key, Statistic]


def _of_arm(task: _Task) -> _ArmScores:
    statistics = arm_statistics(task.answers, task.sampling)
    compared, of_headlines = (
        {key: statistics[key] for key in statistics if key in keys} for keys in (_CLAIMED, _OF_HEADLINES)
    )
    keys = sorted(statistics, key=lambda key: key[::-1])
    rows = [
        {"arm_id": task.arm} | as_row(key, statistics[key], task.sampling.method)
        for key in keys
        if not key[0].startswith("macro_f1.")
    ]
    return _ArmScores(task.arm, rows, compared, of_headlines)


class _Table:
    """Collects score rows and spills them to a file part by part."""

    def __init__(self) -> None:
        self._spool = Spool(SCORES)
        self._rows: list[dict[str, Any]] = []

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows."""
        self._rows += map(dict, rows)
        if len(self._rows) >= _AT_ONCE:
            self._turn()

    def whole(self) -> Spool:
        """All rows in order of arrival."""
        self._turn()
        return self._spool

    def _turn(self) -> None:
        self._spool.add(from_rows(self._rows, SCORES))
        self._rows = []


def _repeat_rows(
    answers: ArmAnswers, repeats: Collection[ArmPair], sampling: Resampling
) -> Iterator[dict[str, Any]]:
    """Share of answers of an arm that change when its requests are repeated, on every tier.

    An answer changes if it names other options; that of a report, if its fields name other entities. Unparsed
    answers count as equal. Only items judged in both arms count.
    """
    judged = answers.judged
    for arm, again in sorted(repeats):
        first, second = judged[arm], judged[again]
        first, second = first.common_with(second), second.common_with(first)
        for tier in TIERS:
            before, after = (of_fields(side.in_scope(tier)) for side in (first, second))
            if len(before):
                changed = (before.parsed != after.parsed).astype(float)
                values = item_mean(changed, before.patient, sampling.weights)
                statistic = Statistic(values, replace(Basis.of(before)))
                yield {"arm_id": arm} | as_row((ANSWERS_CHANGED, tier), statistic, sampling.method)
