"""Headline scores: one value per model and tier, over the protocols and items that all models have."""

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from cardiolens.base.phrasing import counted
from cardiolens.config.sweep_factors import HEADLINE
from cardiolens.score.statistics.answers import Answers, of_fields
from cardiolens.score.statistics.arm_statistics import CORRECTED, EXACT, arm_statistics
from cardiolens.score.statistics.comparisons import Row, comparison
from cardiolens.score.statistics.counting import Cells, Key, claimed_values
from cardiolens.score.statistics.differences import over_hospitals_p
from cardiolens.score.statistics.dropped_items import bounds
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.hypothesis_tests import split, stack, swap_p
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import ENTROPY_DEFICIT
from cardiolens.score.statistics.read_in_both import ReadInBoth, read_in_both, total_of
from cardiolens.score.statistics.statistic import TIERS, Basis, Resampling, Statistic, as_row
from cardiolens.score.statistics.verdict_rows import COMPLETE, SpilledMapping

Headlines = Mapping[str, Mapping[str, Sequence[str]]]  # by model, by protocol: arms, one a seed

METRICS = (
    *("primary", "primary.skill", "primary.uniform", "primary.prevalence", "primary.constant"),
    *(CORRECTED, EXACT, ENTROPY_DEFICIT),
)
PREFIX = "headline:"


def headlines(arms: Sequence[ArmFactors]) -> Headlines:
    """Pick the arms behind each headline: K = 16, standard prompt, selectors that all models have.

    Simulated readers have no influence where there are models. Models with no common selector keep their
    own, and are not compared (protocol 16.3).
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


def headline_statistics(statistics: Mapping[Key, Statistic]) -> dict[Key, Statistic]:
    """Filter the statistics of an arm to those of headlines: tier scores and their references."""
    keys = [(metric, tier) for tier in TIERS for metric in METRICS]
    return {key: statistics[key] for key in keys if key in statistics}


@dataclass(frozen=True, slots=True)
class HeadlineArms:
    """The arms behind headlines, on the items judged in all of them."""

    answers: Mapping[str, Answers]  # by arm, judged or not
    judged: Mapping[str, Answers]  # by arm, the common items
    statistics: Mapping[str, Mapping[Key, Statistic]]
    numbers: Mapping[tuple[str, str], tuple[int, int]]  # of requested and of common items, by arm and tier

    @staticmethod
    def of(
        answers: Mapping[str, Answers],
        statistics: Mapping[str, Mapping[Key, Statistic]],
        models: Headlines,
        sampling: Resampling,
        simulated: Collection[str],
    ) -> "HeadlineArms":
        """Restrict every arm to the common items, and recompute its statistics if it has others."""
        every = [arm for protocols in models.values() for arm in _arms(protocols)]
        deciding = [arm for arm in every if arm not in simulated] or every
        items, reports = (
            _common(getattr(answers[arm].where_judged(), kind).question for arm in deciding)
            for kind in ("items", "reports")
        )
        judged: SpilledMapping[Answers] = SpilledMapping()
        headline_values: dict[str, Mapping[Key, Statistic]] = {}
        numbers: dict[tuple[str, str], tuple[int, int]] = {}
        for arm in every:
            own = answers[arm].where_judged()
            common = judged[arm] = own.among(items, reports)
            headline_values[arm] = (
                statistics[arm] if len(common) == len(own) else arm_statistics(common, sampling)
            )
            headline_values[arm] = headline_statistics(headline_values[arm])
            for tier in TIERS:
                of_asked, of_common = (of_fields(side.in_scope(tier)) for side in (answers[arm], common))
                numbers[arm, tier] = len(of_asked), len(of_common)
        return HeadlineArms(answers, judged, headline_values, numbers)

    def percent_judged(self, tier: str, protocols: Mapping[str, Sequence[str]]) -> float | None:
        """Percent of the requested items that all compared arms judged; None where nearly all are."""
        n_requested, n_used = (
            sum(number[side] for number in (self.numbers[arm, tier] for arm in _arms(protocols)))
            for side in range(2)
        )
        return None if n_used >= COMPLETE * n_requested else 100 * n_used / n_requested


def _arms(protocols: Mapping[str, Sequence[str]]) -> list[str]:
    return [arm for arms in protocols.values() for arm in arms]


def _common(questions: Iterable[np.ndarray]) -> np.ndarray:
    return functools.reduce(np.intersect1d, questions)


@dataclass(frozen=True, slots=True)
class HeadlineResults:
    """Score rows of headlines, their comparisons, and the means of models that are no simulated readers."""

    rows: list[dict[str, Any]]
    comparisons: list[Row]
    means: Mapping[str, Mapping[Key, Statistic]]


def headline_results(
    answers: Mapping[str, Answers],
    statistics: Mapping[str, Mapping[Key, Statistic]],
    models: Headlines,
    sampling: Resampling,
    simulated: Collection[str] = (),
) -> HeadlineResults:
    """Scores of `headline:<model>` on every tier, and their differences between models.

    Seeds are averaged first, then protocols; all arms share their resamples. `simulated` are arms of readers
    that are not models: they are compared only if there are no others.
    """
    if not models:
        return HeadlineResults([], [], {})
    arms = HeadlineArms.of(answers, statistics, models, sampling, simulated)
    means = {model: model_means(arms.statistics, protocols) for model, protocols in models.items()}
    rows = [
        {"arm_id": f"{PREFIX}{model}"}
        | as_row(key, statistic, sampling.method)
        | {"percent_judged": arms.percent_judged(key[1], models[model])}
        for model, of_model in means.items()
        for key, statistic in of_model.items()
    ]
    unreal = {model for model, protocols in models.items() if set(_arms(protocols)) <= set(simulated)}
    comparisons = []
    for pair in combinations(sorted(set(means) - unreal) or sorted(means), 2):
        sizes = [{name: len(of) for name, of in models[model].items()} for model in pair]
        if sizes[0] == sizes[1]:
            is_simulated = pair[0] in unreal
            names: Row = {"factor": "model", "level": pair[0], "versus": pair[1], "adjustment": "holm"}
            names["family"] = "models, simulated readers" if is_simulated else "models"
            sides = models[pair[0]], models[pair[1]]
            for row in _pair_rows(arms, sides, (means[pair[0]], means[pair[1]]), sampling):
                comparisons.append(names | row | {"simulated": is_simulated})
    real = {model: of_model for model, of_model in means.items() if model not in unreal}
    return HeadlineResults(rows, comparisons, real)


def _pair_rows(
    headline_arms: HeadlineArms,
    sides: tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]],
    means: tuple[Mapping[Key, Statistic], Mapping[Key, Statistic]],
    sampling: Resampling,
) -> Iterator[Row]:
    ours, theirs = means
    judged_sides = [[headline_arms.judged[arm] for arm in _arms(side)] for side in sides]
    requested_sides = [[headline_arms.answers[arm] for arm in _arms(side)] for side in sides]
    shares = [1 / len(sides[0]) / len(arms) for arms in sides[0].values() for _ in arms]
    is_judged = all(len(answers) for arms in judged_sides for answers in arms)
    p_values = _swap_p_values(judged_sides, shares, sampling) if is_judged else {}
    dropped = bounds(requested_sides[0], requested_sides[1], judged_sides[0][0], sampling.min_n)
    read = _read_in_both(judged_sides, shares, sampling.min_n)
    for key in (("primary", tier) for tier in TIERS if ("primary", tier) in ours.keys() & theirs.keys()):
        basis = ours[key].basis
        difference = Statistic(ours[key].values - theirs[key].values, basis, of_pairs=True)
        row = comparison(*key, difference, sampling.method)
        for name in ("low_90", "high_90", "within_p", "beyond_p"):  # no two models are called equivalent
            del row[name]
        if key in p_values:
            row["p"] = over_hospitals_p(p_values[key], row, basis)
        row |= dropped[key].columns("primary") if key in dropped else {}
        yield row | (read[key].columns("primary") if key in read else {})


def _read_in_both(
    sides: Sequence[Sequence[Answers]], shares: Sequence[float], min_n: int
) -> dict[Key, ReadInBoth]:
    """What was read in both of two models, over all their arms."""
    pairs = [*zip(*sides, strict=True)]
    if not any(read_in_both(ours, theirs, min_n) for ours, theirs in pairs):
        return {}
    parts = [read_in_both(ours, theirs, min_n, complete=True) for ours, theirs in pairs]
    return {key: total_of([part[key] for part in parts], shares) for key in parts[0]}


def _swap_p_values(
    answer_sides: Sequence[Sequence[Answers]], shares: Sequence[float], sampling: Resampling
) -> dict[Key, float]:
    """P-values from swapping whole patients between two models, in all their arms at once."""
    sides = [[Cells.of(answers, sampling.patients) for answers in arms] for arms in answer_sides]
    sizes = [[len(rows) for rows in of_arm.rows] for of_arm in sides[0]]

    def mean(sums: Floats) -> dict[Key, Floats]:
        statistics = [
            claimed_values(of_arm.parts, split(of_these, of_parts), sampling.min_n)
            for of_arm, of_these, of_parts in zip(
                sides[0], split(sums, [sum(of_arm) for of_arm in sizes]), sizes, strict=True
            )
        ]
        keys = [("primary", tier) for tier in TIERS if ("primary", tier) in statistics[0]]
        return {
            key: sum(share * values[key] for share, values in zip(shares, statistics, strict=True))  # type: ignore[misc]
            for key in keys
        }

    ours, theirs = (stack([rows for of_arm in side for rows in of_arm.rows]) for side in sides)
    return swap_p(ours, theirs, mean, sampling.coins)


def model_means(
    statistics: Mapping[str, Mapping[Key, Statistic]], protocols: Mapping[str, Sequence[str]]
) -> dict[Key, Statistic]:
    """Tier statistics of a model: means over its protocols, of each the mean over its seeds."""
    means = {}
    for key in ((metric, tier) for tier in TIERS for metric in METRICS):
        by_protocol = {
            protocol: [statistics[arm][key] for arm in arms if key in statistics[arm]]
            for protocol, arms in sorted(protocols.items())
        }
        by_protocol = {protocol: parts for protocol, parts in by_protocol.items() if parts}
        if by_protocol:
            values = [np.mean([part.values for part in parts], axis=0) for parts in by_protocol.values()]
            means[key] = Statistic(np.mean(values, axis=0), _basis(by_protocol))
    return means


def _basis(by_protocol: Mapping[str, Sequence[Statistic]]) -> Basis:
    all_parts = [part.basis for parts in by_protocol.values() for part in parts]
    return Basis(
        n_items=sum(part.n_items for part in all_parts),
        n_patients=max(part.n_patients for part in all_parts),
        n_parse_error=sum(part.n_parse_error for part in all_parts),
        n_refusal=sum(part.n_refusal for part in all_parts),
        note=f"mean over selection protocols {' '.join(by_protocol)} ({counted(len(all_parts), 'arm')})",
        n_effective=min(part.n_effective for part in all_parts),
        effective_items=min(part.effective_items for part in all_parts),
        n_entities=sum(part.n_entities for part in all_parts),
        n_hospitals=all_parts[0].n_hospitals,
        hospital_inflation=max(part.hospital_inflation for part in all_parts),
        n_arms=len(all_parts),
    )
