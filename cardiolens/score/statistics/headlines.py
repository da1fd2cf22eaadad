"""Headline scores: one value per model and tier, over the protocols and items that all models have."""

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cardiolens.base.phrasing import counted
from cardiolens.config.sweep_factors import HEADLINE
from cardiolens.score.statistics.answers import Answers, ArmAnswers
from cardiolens.score.statistics.arm_statistics import CORRECTED, EXACT, arm_statistics
from cardiolens.score.statistics.counting import Cells, Key
from cardiolens.score.statistics.effects import joined
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.metrics import ENTROPY_DEFICIT
from cardiolens.score.statistics.pairs import Sides
from cardiolens.score.statistics.statistic import TIERS, Resampling, Row, Statistic, as_row
from cardiolens.score.statistics.verdict_rows import COMPLETE, SpilledMapping

Protocols = Mapping[str, Sequence[str]]  # by protocol: arms, one a seed
Headlines = Mapping[str, Protocols]  # by model

METRICS = (
    *("primary", "primary.skill", "primary.constant"),
    *(CORRECTED, EXACT, ENTROPY_DEFICIT),
)
PREFIX = "headline:"


def headlines(arms: Sequence[ArmFactors]) -> Headlines:
    """Pick the arms behind each headline: K = 16, standard prompt, selectors that all models have.

    Simulated readers have no influence where there are models. Models with no common selector keep their
    own, and are not compared.
    """
    eligible = [arm for arm in arms if is_headline(arm)]
    ranking = [arm for arm in eligible if not arm.simulated] or eligible
    models = {arm.model for arm in ranking}
    common = {arm.selector for arm in eligible}
    for model in models:
        common &= {arm.selector for arm in ranking if arm.model == model}
    arms_by_model: dict[str, dict[str, list[str]]] = {}
    for arm in sorted(eligible, key=lambda arm: (arm.model, arm.selector)):
        if not common or arm.selector in common:
            arms_by_model.setdefault(arm.model, {}).setdefault(arm.protocol, []).append(arm.arm_id)
    return arms_by_model


def is_headline(arm: ArmFactors) -> bool:
    """Return whether an arm has the budget, prompt and control of a headline."""
    return all(getattr(arm, name) == value for name, value in HEADLINE.items())


def why_no_headline(arms: Sequence[ArmFactors]) -> str:
    """What arms a headline needs, and the values to add to a sweep that has none of them."""
    settings = ", ".join(f"{name}={value}" for name, value in HEADLINE.items())
    additions = []
    for name, value in HEADLINE.items():
        levels = list(dict.fromkeys(getattr(arm, name) for arm in arms))
        if value not in levels:
            additions.append(f"{name}=[{','.join([*levels, value])}]")
    add = f" Run it again with {' '.join(additions)}." if additions else ""
    return f"A headline is of arms with {settings}; this run has none with an answer that was judged.{add}"


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
    every = [arm for protocols in models.values() for arm in _arms(protocols)]
    judged = _common_items(answers, every, [arm for arm in every if arm not in simulated] or every)
    by_arm = {
        arm: statistics[arm] if len(own) == len(answers.judged(arm)) else arm_statistics(own, sampling)
        for arm, own in judged.items()
    }
    means = {model: model_means(by_arm, protocols) for model, protocols in models.items()}
    rows: list[Row] = []
    for model, of_model in means.items():
        arms = _arms(models[model])
        for key, statistic in of_model.items():
            n_asked = sum(len(answers[arm].of_tier(key[1])) for arm in arms)
            n_used = sum(len(judged[arm].of_tier(key[1])) for arm in arms)
            share = None if n_used >= COMPLETE * n_asked else 100 * n_used / n_asked
            names = {"arm_id": f"{PREFIX}{model}", "percent_judged": share}
            rows.append(as_row(key, statistic, sampling.method) | names)
    unreal = {model for model, protocols in models.items() if set(_arms(protocols)) <= set(simulated)}
    comparisons = []
    for pair in combinations(sorted(set(means) - unreal) or sorted(means), 2):
        sizes = [{name: len(arms) for name, arms in models[model].items()} for model in pair]
        if sizes[0] == sizes[1]:
            is_simulated = pair[0] in unreal
            names = {"factor": "model", "level": pair[0], "versus": pair[1], "adjustment": "holm"}
            names |= {"simulated": is_simulated}
            names["family"] = "models, simulated readers" if is_simulated else "models"
            protocols = models[pair[0]], models[pair[1]]
            rows_of_pair = _pair_rows(answers, judged, protocols, (means[pair[0]], means[pair[1]]), sampling)
            comparisons += [names | row for row in rows_of_pair]
    real = {model: of_model for model, of_model in means.items() if model not in unreal}
    return HeadlineResults(rows, comparisons, real)


def _arms(protocols: Protocols) -> list[str]:
    return [arm for arms in protocols.values() for arm in arms]


def _common_items(answers: ArmAnswers, arms: Sequence[str], deciding: Sequence[str]) -> Mapping[str, Answers]:
    """The answers of arms to the items that all deciding ones judged."""
    items, reports = (
        functools.reduce(np.intersect1d, (getattr(answers.judged(arm), kind).question for arm in deciding))
        for kind in ("items", "reports")
    )
    judged: SpilledMapping[Answers] = SpilledMapping()
    for arm in arms:
        judged[arm] = answers.judged(arm).among(items, reports)
    return judged


def _pair_rows(
    answers: ArmAnswers,
    judged: Mapping[str, Answers],
    protocols: tuple[Protocols, Protocols],
    means: tuple[Mapping[Key, Statistic], Mapping[Key, Statistic]],
    sampling: Resampling,
) -> Iterator[Row]:
    """Rows of the scores of two models; no two models are called equivalent."""
    ours, theirs = means
    of_judged = [[judged[arm] for arm in _arms(side)] for side in protocols]
    of_asked = [[answers[arm] for arm in _arms(side)] for side in protocols]
    cells = [[Cells.of(arm, sampling.patients) for arm in side] for side in of_judged]
    shares = [1 / len(protocols[0]) / len(arms) for arms in protocols[0].values() for _ in arms]
    sides = Sides((of_judged[0], of_judged[1]), (of_asked[0], of_asked[1]), (cells[0], cells[1]), shares)
    differences = {
        key: Statistic(ours[key].values - theirs[key].values, ours[key].basis, of_pairs=True)
        for key in (("primary", tier) for tier in TIERS)
        if key in ours and key in theirs
    }
    for _, _, row in sides.compared(differences, sampling):
        for name in ("low_90", "high_90", "within_p", "beyond_p", "n_same_request"):
            del row[name]
        yield row


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
