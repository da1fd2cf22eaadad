"""Headline scores: one value per model and tier, over the protocols and items that all models have."""

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cardiolens.base.phrasing import counted
from cardiolens.score.statistics.answers import Answers, ArmAnswers
from cardiolens.score.statistics.arm_statistics import CORRECTED, EXACT, arm_statistics
from cardiolens.score.statistics.counting import Cells, Key
from cardiolens.score.statistics.effects import joined
from cardiolens.score.statistics.factors import Headlines, Protocols, arms_of
from cardiolens.score.statistics.metrics import ENTROPY_DEFICIT
from cardiolens.score.statistics.pairs import Side, compare_sides
from cardiolens.score.statistics.statistic import TIERS, Resampling, Row, Statistic, as_row
from cardiolens.score.statistics.verdict_rows import COMPLETE, SpilledMapping

METRICS = (
    *("primary", "primary.skill", "primary.constant"),
    *(CORRECTED, EXACT, ENTROPY_DEFICIT),
)
PREFIX = "headline:"


@dataclass(frozen=True, slots=True)
class HeadlineResults:
    """Score rows of headlines, their comparisons, and the means of models that are no simulated readers."""

    rows: list[Row]
    comparisons: list[Row]
    means: Mapping[str, Mapping[Key, Statistic]]


def headline_results(
    answers: ArmAnswers,
    statistics: Mapping[str, Mapping[Key, Statistic]],
    models: Headlines,
    sampling: Resampling,
    simulated: Collection[str] = (),
) -> HeadlineResults:
    """Scores of `headline:<model>` on every tier, and their differences between models.

    They are over the items judged in all arms behind headlines. Seeds are averaged first, then protocols; all
    arms share their resamples. `simulated` are arms of readers that are not models: they are compared only if
    there are no others.
    """
    if not models:
        return HeadlineResults([], [], {})
    judged = _common_items(answers, [arm for of in models.values() for arm in arms_of(of)], simulated)
    by_arm = {
        arm: statistics[arm] if len(of_arm) == len(answers.judged(arm)) else arm_statistics(of_arm, sampling)
        for arm, of_arm in judged.items()
    }
    means = {model: model_means(by_arm, protocols) for model, protocols in models.items()}
    rows = []
    for model, key in ((model, key) for model, of_model in means.items() for key in of_model):
        arms = arms_of(models[model])
        n_asked, n_used = (
            sum(len(of[arm].of_tier(key[1])) for arm in arms) for of in (answers.asked, judged)
        )
        share = None if n_used >= COMPLETE * n_asked else 100 * n_used / n_asked
        row = as_row(key, means[model][key], sampling.method)
        rows.append(row | {"arm_id": f"{PREFIX}{model}", "percent_judged": share})
    unreal = {model for model, protocols in models.items() if {*arms_of(protocols)} <= {*simulated}}
    real = {model: of_model for model, of_model in means.items() if model not in unreal}
    compared = sorted(real) or sorted(means)
    family = {"simulated": not real, "family": "models" if real else "models, simulated readers"}
    comparisons = []
    for model, versus in combinations(compared, 2):
        if _sizes(models[model]) == _sizes(models[versus]):
            names = {"factor": "model", "level": model, "versus": versus, "adjustment": "holm", **family}
            ours, theirs = (
                _side(answers, judged, models[name], means[name], sampling) for name in (model, versus)
            )
            shares = [1 / len(models[model]) / len(arms) for arms in models[model].values() for _ in arms]
            keys = [("primary", tier) for tier in TIERS if ("primary", tier) in means[model]]
            # no two models are called equivalent
            found = compare_sides(ours, theirs, shares, keys, sampling, against_margin=False)
            comparisons += [names | row for _, _, row in found]
    return HeadlineResults(rows, comparisons, real)


def _common_items(
    answers: ArmAnswers, arms: Sequence[str], simulated: Collection[str]
) -> Mapping[str, Answers]:
    """The answers of arms to the items that all of them judged; simulated readers decide nothing."""
    deciding = [arm for arm in arms if arm not in simulated] or arms
    items, reports = (
        functools.reduce(np.intersect1d, (getattr(answers.judged(arm), kind).question for arm in deciding))
        for kind in ("items", "reports")
    )
    judged: SpilledMapping[Answers] = SpilledMapping()
    for arm in arms:
        judged[arm] = answers.judged(arm).among(items, reports)
    return judged


def _sizes(protocols: Protocols) -> dict[str, int]:
    return {name: len(arms) for name, arms in protocols.items()}


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
    cells = [Cells.of(of_arm, sampling.patients) for of_arm in of_arms]
    return Side(of_arms, [answers.asked[arm] for arm in arms], cells, means)


def model_means(
    statistics: Mapping[str, Mapping[Key, Statistic]], protocols: Protocols
) -> dict[Key, Statistic]:
    """Tier statistics of a model: means over its protocols, of each the mean over its seeds."""
    means = {}
    for key in ((metric, tier) for tier in TIERS for metric in METRICS):
        by_protocol = {
            protocol: parts
            for protocol, arms in sorted(protocols.items())
            if (parts := [statistics[arm][key] for arm in arms if key in statistics[arm]])
        }
        if by_protocol:
            values = [np.mean([part.values for part in parts], axis=0) for parts in by_protocol.values()]
            bases = [part.basis for parts in by_protocol.values() for part in parts]
            note = f"mean over selection protocols {' '.join(by_protocol)} ({counted(len(bases), 'arm')})"
            means[key] = Statistic(np.mean(values, axis=0), joined(bases, note, n_arms=len(bases)))
    return means
