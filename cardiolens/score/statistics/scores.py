"""From verdicts to the table of scores."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cardiolens.base.phases import begin, phase
from cardiolens.runtime.processes import spread
from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.arm_answers import ArmAnswers
from cardiolens.score.statistics.bootstrap import resampling_weights
from cardiolens.score.statistics.collapse_question import collapse_effects, collapse_questions
from cardiolens.score.statistics.differences import MANY, Families, comparable_statistics, difference_rows
from cardiolens.score.statistics.factors import ArmPair
from cardiolens.score.statistics.field_scores import Scopes
from cardiolens.score.statistics.headlines import Headlines, headline_rows, headline_statistics
from cardiolens.score.statistics.items import Items
from cardiolens.score.statistics.multiple_testing import Tests
from cardiolens.score.statistics.outcomes import flag_incomplete
from cardiolens.score.statistics.pooled_effects import PooledEffects
from cardiolens.score.statistics.pooled_questions import PooledQuestion
from cardiolens.score.statistics.pooled_rows import pooled_rows
from cardiolens.score.statistics.repeats import repeat_rows
from cardiolens.score.statistics.report_references import Forms
from cardiolens.score.statistics.resampling import Resampling
from cardiolens.score.statistics.rows import ONE_ANSWER, Row, as_row
from cardiolens.score.statistics.spilled_mapping import SpilledMapping
from cardiolens.score.statistics.statistic import Key, Statistic
from cardiolens.score.statistics.swap_test import SWAPS
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.storage.schemas import SCORES
from cardiolens.storage.spool import Spool
from cardiolens.storage.tables import from_rows

_AT_ONCE = 16_384  # rows per part of the table


def score(verdicts: pa.Table | Verdicts, *settings: Any, **options: Any) -> pa.Table:
    """Score verdicts into one table in memory; settings and options are those of `compute_scores`."""
    return compute_scores(ArmAnswers.of(verdicts), *settings, **options).whole()


def compute_scores(
    answers: ArmAnswers,
    min_n: int,
    resamples: int,
    seed: int,
    families: Families | None = None,
    *,
    headlines: Headlines | None = None,
    gains: Collection[ArmPair] = (),
    repeats: Collection[ArmPair] = (),
    simulated: Collection[str] = (),
    pooled: Sequence[PooledQuestion] = (),
    forms: Forms | None = None,
    scopes: Scopes | None = None,
    swaps: int = SWAPS,
) -> Spool:
    """Score every arm with 95 % intervals, then paired differences of the pairs of each family of arms,
    then headlines of models, each a mean over arms.

    `gains` are pairs of an arm and its blind arm: their difference is `image_gain` as well, and of
    the blind arm there is `text_shortcut`, its score beyond the best constant answer; `repeats` are
    pairs of an arm and its repeat, which have `answers_changed`. Reports have references where `forms` lists
    the values of their fields, and fields have scores by `scopes`. `simulated` are arms of simulated
    readers, which are families of tests of their own and are not compared in headlines. `pooled` are the
    questions that are answered over all models at once.

    Values are percent, save those of `rows.OWN_UNIT` and p-values. Items that were not run are left out; the
    method says where that leaves a cell incomplete. Rows of arms are sorted by (arm, scope, metric); neither
    order nor parts of verdicts change a digit.
    """
    weights = resampling_weights(len(answers.patients), resamples, seed, answers.hospitals)
    of_hospitals = answers.hospitals is not None
    sampling = Resampling(weights, min_n, seed, forms or {}, scopes or {}, swaps, of_hospitals)
    blind = {versus for _, versus in gains}
    headline_arms = {arm for model in (headlines or {}).values() for arms in model.values() for arm in arms}
    table = _Table()
    by_arm, of_headlines = _score_arms(answers, blind, headline_arms, sampling, table)
    tests = Tests()
    of_gains: list[Row] = []
    of_collapse = collapse_questions(headlines or {}, simulated)
    pooled = [*pooled, *of_collapse]
    effects = PooledEffects(pooled)
    for question in of_collapse:
        for model, key, effect in collapse_effects(question, of_headlines, headlines or {}):
            effects.put(question, model, key, effect)
    kinds: dict[str, Any] = {"simulated": simulated, "pooled": effects.pairs}
    n_pairs = sum(map(len, (families or {}).values()))
    pairs = difference_rows(answers, by_arm, families or {}, sampling, **kinds)
    for pair in phase("comparing", "pairs of arms", pairs, n_pairs):
        table.add(pair.rows)
        tests.add(pair.tests)
        effects.add(pair)
        of_gains += _image_gains(pair.rows, gains)
    table.add(of_gains)
    begin("pooling over models")
    table.add(pooled_rows(pooled, effects, sampling))
    table.add(repeat_rows(answers.judged, repeats, sampling.weights, sampling.method))
    begin("comparing models")
    of_models, model_tests = headline_rows(answers, of_headlines, headlines or {}, sampling, simulated)
    table.add(of_models)
    tests.add(model_tests)
    begin("adjusting tests")
    for rows in tests.adjusted():
        table.add(rows)
    return table.whole()


_ByArm = SpilledMapping[dict[Key, Statistic]]


def _score_arms(
    answers: ArmAnswers,
    blind: AbstractSet[str],
    headline_arms: AbstractSet[str],
    sampling: Resampling,
    table: "_Table",
) -> tuple[_ByArm, _ByArm]:
    """Add the rows of every arm; return the statistics that are compared, and those of headlines, by arm."""
    by_arm, of_headlines = _ByArm(), _ByArm()
    tasks = (_Task(arm, arm_answers, arm in blind, sampling) for arm, arm_answers in answers.judged.items())
    many = len(answers.arms) * sampling.weights.size >= MANY
    of_arms = spread(_of_arm, tasks, worth=many)
    for scores in phase("scoring", "arms", of_arms, len(answers.arms)):
        by_arm[scores.arm] = scores.comparable
        if scores.arm in headline_arms:
            of_headlines[scores.arm] = scores.of_headlines
        table.add(flag_incomplete(row, answers.shares) for row in scores.rows)
    return by_arm, of_headlines


@dataclass(frozen=True, slots=True)
class _Task:
    """An arm to score, in this or a worker process."""

    arm: str
    answers: Answers
    blind: bool
    sampling: Resampling


@dataclass(frozen=True, slots=True)
class _ArmScores:
    """The score rows of one arm, and the statistics that comparisons and headlines need."""

    arm: str
    rows: list[dict[str, object]]
    comparable: dict[Key, Statistic]
    of_headlines: dict[Key, Statistic]


def _of_arm(task: _Task) -> _ArmScores:
    statistics = task.sampling.statistics(task.answers)
    comparable, of_headlines = comparable_statistics(statistics), headline_statistics(statistics)
    statistics |= _text_shortcuts(statistics, task.answers) if task.blind else {}
    keys = sorted(statistics, key=lambda key: key[::-1])
    rows = [{"arm_id": task.arm} | as_row(key, statistics[key], task.sampling.method) for key in keys]
    return _ArmScores(task.arm, rows, comparable, of_headlines)


class _Table:
    """Collects score rows and spills them to a file part by part."""

    def __init__(self) -> None:
        self._spool = Spool(SCORES)
        self._rows: list[dict[str, object]] = []

    def add(self, rows: Iterable[Row]) -> None:
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


def _image_gains(differences: Iterable[Row], gains: Collection[ArmPair]) -> list[dict[str, object]]:
    return [
        {**row, "metric": "image_gain"}
        for row in differences
        if row["metric"] == "primary" and (row["arm_id"], row["versus_arm_id"]) in gains
    ]


def _text_shortcuts(statistics: Mapping[Key, Statistic], blind: Answers) -> dict[Key, Statistic]:
    """Score of a blind arm beyond the best constant answer; noted if it gives one answer per subtask."""
    shortcuts = {}
    for (metric, scope), statistic in statistics.items():
        if metric == "primary" and ("primary.constant", scope) in statistics:
            rows = blind.in_scope(scope)
            rows = rows if isinstance(rows, Items) else rows.where(rows.channel == "fields")
            distinct_answers = {*zip(rows.subtask.tolist(), rows.parsed.tolist(), strict=True)}
            basis = statistic.basis
            if len(distinct_answers) == len({subtask for subtask, _ in distinct_answers}):
                basis = replace(basis, note="; ".join(filter(None, (ONE_ANSWER, basis.note))))
            values = statistic.values - statistics["primary.constant", scope].values
            shortcuts["text_shortcut", scope] = Statistic(values, basis)
    return shortcuts
