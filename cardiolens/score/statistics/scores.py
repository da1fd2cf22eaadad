"""From verdicts to the tables of scores and of comparisons, and headlines of models."""

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cardiolens.base.phases import begin, phase
from cardiolens.base.phrasing import counted
from cardiolens.runtime.processes import spread
from cardiolens.score.statistics.arm_statistics import CORRECTED, EXACT, arm_statistics
from cardiolens.score.statistics.comparisons import Effect, concluded, joined
from cardiolens.score.statistics.counting import EXTRA_METRICS, Key, cells_of
from cardiolens.score.statistics.factors import (
    TRUTH,
    ArmFactors,
    ArmPair,
    Headlines,
    Protocols,
    arms_of,
    collapse_questions,
    control_pairs,
    families,
    headlines,
    pooled_questions,
)
from cardiolens.score.statistics.item_scores import item_mean, table_of
from cardiolens.score.statistics.items import Answers, ArmAnswers
from cardiolens.score.statistics.metrics import ENTROPY_DEFICIT
from cardiolens.score.statistics.pairs import MANY, EffectKey, Side, compare_pairs, compare_sides
from cardiolens.score.statistics.pooled import COLLAPSE_KEYS, pooled_rows, tier_change_rows
from cardiolens.score.statistics.statistic import TIERS, Resampling, Row, Settings, Statistic, as_row
from cardiolens.score.statistics.verdict_rows import COMPLETE, Verdicts
from cardiolens.storage.schemas import COMPARISONS, SCORES
from cardiolens.storage.spool import SpilledMapping
from cardiolens.storage.tables import from_rows

ANSWERS_CHANGED = "answers_changed"
METRICS = (
    *("primary", "primary.skill", "primary.constant"),
    *(CORRECTED, EXACT, ENTROPY_DEFICIT),
)
PREFIX = "headline:"
_COMPARED = frozenset((metric, tier) for metric in ("primary", *EXTRA_METRICS, *METRICS) for tier in TIERS)


class Results(NamedTuple):
    """The tables of scores and of comparisons."""

    scores: pa.Table
    comparisons: pa.Table


def score(verdicts: pa.Table | Verdicts, arms: Sequence[ArmFactors], settings: Settings) -> Results:
    """Score verdicts of some arms."""
    return compute_scores(ArmAnswers.of(verdicts), arms, settings)


def compute_scores(answers: ArmAnswers, arms: Sequence[ArmFactors], settings: Settings) -> Results:
    """Score every arm with 95 % intervals, headlines of models, and compare what differs in one factor.

    `arms` without a judged item are left out. Of an arm and its repeat there is `answers_changed`. Simulated
    readers are families of tests of their own, and are not compared in headlines.

    Values are percent, save those of `statistic.OWN_UNIT`. Items that were not run are left out. Rows of arms
    are sorted by (arm, scope, metric); neither order nor parts of verdicts change a digit.
    """
    sampling = Resampling.of(settings, len(answers.patients), answers.hospitals)
    arms = [arm for arm in arms if arm.arm_id in answers.arms]
    of_models = headlines(arms)
    simulated = {arm.arm_id for arm in arms if arm.simulated}
    statistics, scores = _score_arms(answers, sampling)
    comparisons: list[Row] = []
    collapse = collapse_questions(of_models, simulated)
    questions = [*pooled_questions(arms), *collapse]
    effects = SpilledMapping[ArmPair, Mapping[EffectKey, Effect]]()
    for model in (model for question in collapse for model in question.weights):
        own = model_means(statistics, of_models[model])
        effects[model, TRUTH] = {(key, False): Effect.of(own[key]) for key in COLLAPSE_KEYS if key in own}
    pooled = {pair for question in questions for pairs in question.weights.values() for pair in pairs}
    compared = families(arms)
    compared_pairs = compare_pairs(answers, statistics, compared, sampling, arms, pooled=pooled)
    for of_pair in phase("comparing", "pairs of arms", compared_pairs, sum(map(len, compared.values()))):
        comparisons += of_pair.rows
        if of_pair.effects:
            effects[of_pair.pair] = of_pair.effects
    begin("pooling over models")
    comparisons += pooled_rows(questions, effects, sampling)
    changed = [*_repeat_rows(answers, arms, sampling)]
    begin("comparing models")
    rows, between, means = _headlines(answers, statistics, of_models, sampling, arms)
    scores.append(from_rows([*changed, *rows], SCORES))
    comparisons += [*between, *tier_change_rows(means, sampling.method)]
    begin("adjusting tests")
    decided = concluded([{"simulated": False} | row for row in comparisons])
    return Results(pa.concat_tables(scores), from_rows(decided, COMPARISONS))


def _score_arms(
    answers: ArmAnswers, sampling: Resampling
) -> tuple[SpilledMapping[str, dict[Key, Statistic]], list[pa.Table]]:
    """The statistics that are compared, by arm, and the score rows of each arm."""
    statistics, scores = SpilledMapping[str, dict[Key, Statistic]](), []
    tasks = ((arm, answers.judged(arm), sampling) for arm in answers.arms)
    many = len(answers.arms) * sampling.weights.size >= MANY
    of_arms = phase("scoring", "arms", spread(_of_arm, tasks, worth=many), len(answers.arms))
    for arm, rows, compared in of_arms:
        statistics[arm] = compared
        scores.append(table_of(rows, answers.shares))
    return statistics, scores


def _of_arm(task: tuple[str, Answers, Resampling]) -> tuple[str, list[Row], dict[Key, Statistic]]:
    """The score rows of an arm and what is compared of it, in this or a worker process."""
    arm, answers, sampling = task
    statistics = arm_statistics(answers, sampling)
    rows = [
        {"arm_id": arm} | as_row(key, statistics[key], sampling.method)
        for key in sorted(statistics, key=lambda key: key[::-1])
        if not key[0].startswith("macro_f1.")
    ]
    return arm, rows, {key: statistics[key] for key in statistics if key in _COMPARED}


def _repeat_rows(answers: ArmAnswers, arms: Sequence[ArmFactors], sampling: Resampling) -> Iterator[Row]:
    """Share of answers of an arm that change when its requests are repeated, on every tier.

    An answer changes if it names other options; that of a report, if its fields name other entities. Unparsed
    answers count as equal. Only items judged in both arms count.
    """
    for arm, again in control_pairs(arms, "repeat"):
        first, second = answers.judged(arm), answers.judged(again)
        first, second = first.common_with(second), second.common_with(first)
        for tier in TIERS:
            before, after = first.of_tier(tier), second.of_tier(tier)
            if len(before):
                changed = np.asarray(before.parsed != after.parsed, np.float64)
                mean = item_mean(changed, before.patient, sampling.weights)
                statistic = Statistic(mean, sampling.basis(before))
                yield {"arm_id": arm} | as_row((ANSWERS_CHANGED, tier), statistic, sampling.method)


def _headlines(
    answers: ArmAnswers,
    statistics: Mapping[str, Mapping[Key, Statistic]],
    models: Headlines,
    sampling: Resampling,
    factors: Sequence[ArmFactors],
) -> tuple[list[Row], list[Row], Mapping[str, Mapping[Key, Statistic]]]:
    """Scores of `headline:<model>` on every tier, their differences between models, and means of models.

    They are over the items judged in all arms behind headlines. Seeds are averaged first, then protocols; all
    arms share their resamples. Models with other selectors or seeds are not compared, and simulated readers
    only if there are no models; they are not among the means.
    """
    if not models:
        return [], [], {}
    selectors = {arm.arm_id: arm.selector for arm in factors}
    simulated = {arm.arm_id for arm in factors if arm.simulated}
    judged = _common_items(answers, [arm for of in models.values() for arm in arms_of(of)], simulated)
    by_arm = {
        arm: statistics[arm] if len(of_arm) == len(answers.judged(arm)) else arm_statistics(of_arm, sampling)
        for arm, of_arm in judged.items()
    }
    means = {model: model_means(by_arm, protocols) for model, protocols in models.items()}
    rows = []
    for (model, of_model), tier in product(means.items(), TIERS):
        arms = arms_of(models[model])
        n_asked, n_used = (sum(len(of[arm].of_tier(tier)) for arm in arms) for of in (answers.asked, judged))
        share = None if n_used >= COMPLETE * n_asked else 100 * n_used / n_asked
        for key in (key for key in of_model if key[1] == tier):
            row = as_row(key, of_model[key], sampling.method)
            rows.append(row | {"arm_id": f"{PREFIX}{model}", "percent_judged": share})
    real = {model: of for model, of in means.items() if not {*arms_of(models[model])} <= simulated}
    family = {"simulated": not real, "family": "models" if real else "models, simulated readers"}
    comparisons = []
    for model, versus in combinations(sorted(real) or sorted(means), 2):
        first, second = ([selectors[arm] for arm in arms_of(models[name])] for name in (model, versus))
        if first == second:
            names = {"factor": "model", "level": model, "versus": versus, "adjustment": "holm", **family}
            ours, theirs = (
                _side(answers, judged, models[name], means[name], sampling) for name in (model, versus)
            )
            shares = [1 / len(models[model]) / len(arms) for arms in models[model].values() for _ in arms]
            keys = [("primary", tier) for tier in TIERS if ("primary", tier) in means[model]]
            # no two models are called equivalent
            found = compare_sides(ours, theirs, shares, keys, sampling, against_margin=False)
            comparisons += [names | row for _, _, row in found]
    return rows, comparisons, real


def _common_items(
    answers: ArmAnswers, arms: Sequence[str], simulated: Collection[str]
) -> Mapping[str, Answers]:
    """The answers of arms to the items that all of them judged; simulated readers decide nothing."""
    deciding = [arm for arm in arms if arm not in simulated] or arms
    items, reports = (
        functools.reduce(np.intersect1d, (getattr(answers.judged(arm), kind).question for arm in deciding))
        for kind in ("items", "reports")
    )
    judged = SpilledMapping[str, Answers]()
    for arm in arms:
        judged[arm] = answers.judged(arm).among(items, reports)
    return judged


def _side(
    answers: ArmAnswers,
    judged: Mapping[str, Answers],
    protocols: Protocols,
    means: Mapping[Key, Statistic],
    sampling: Resampling,
) -> Side:
    """The arms behind a headline as a side of a comparison."""
    arms = arms_of(protocols)
    of_arms = [judged[arm] for arm in arms]
    cells = [cells_of(of_arm, sampling.patients) for of_arm in of_arms]
    return Side(of_arms, [answers.asked[arm] for arm in arms], cells, means)


def model_means(
    statistics: Mapping[str, Mapping[Key, Statistic]], protocols: Protocols
) -> dict[Key, Statistic]:
    """Tier statistics of a model: means over its protocols, of each the mean over its seeds."""
    means: dict[Key, Statistic] = {}
    of_arms = {arm: statistics[arm] for arm in arms_of(protocols)}
    for key in ((metric, tier) for tier in TIERS for metric in METRICS):
        by_protocol = {
            protocol: parts
            for protocol, arms in sorted(protocols.items())
            if (parts := [of_arms[arm][key] for arm in arms if key in of_arms[arm]])
        }
        if by_protocol:
            values = [np.mean([part.values for part in parts], axis=0) for parts in by_protocol.values()]
            bases = [part.basis for parts in by_protocol.values() for part in parts]
            note = f"mean over selection protocols {' '.join(by_protocol)} ({counted(len(bases), 'arm')})"
            means[key] = Statistic(np.mean(values, axis=0), joined(bases, note, n_arms=len(bases)))
    return means
