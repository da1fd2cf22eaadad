"""Headline scores: one value of a model a tier, over the protocols of its arms."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from cardiolens.stats.factors import ArmFactors
from cardiolens.stats.rows import TIERS, as_row
from cardiolens.stats.statistic import Basis, Key, Statistic

Headlines = Mapping[str, Mapping[str, Sequence[str]]]  # by model, by protocol: arms, one a seed

HEADLINE = {"budget": "16", "prompt": "standard", "control": "none", "wording": "0"}
COMPARED = ("primary", "primary.skill")
METRICS = (*COMPARED, "primary.uniform", "primary.prevalence", "primary.constant")
PREFIX = "headline:"


def headlines(arms: Sequence[ArmFactors]) -> Headlines:
    """The arms that a model's headline is made of: K = 16, standard prompt."""
    found: dict[str, dict[str, list[str]]] = {}
    for arm in arms:
        if all(getattr(arm, name) == value for name, value in HEADLINE.items()):
            found.setdefault(arm.model, {}).setdefault(arm.protocol, []).append(arm.arm_id)
    return found


def of_headline(statistics: Mapping[Key, Statistic]) -> dict[Key, Statistic]:
    """The statistics of an arm that headlines are made of: tier scores beside their references."""
    keys = [(metric, tier) for tier in TIERS for metric in METRICS]
    return {key: statistics[key] for key in keys if key in statistics}


def headline_rows(
    statistics: Mapping[str, Mapping[Key, Statistic]], models: Headlines, method: str
) -> list[dict[str, object]]:
    """Rows of scores of `headline:<model>` on every tier, and their differences between models.

    Seeds are averaged first, then protocols; all arms share their resamples.
    """
    means = {model: model_means(statistics, protocols) for model, protocols in models.items()}
    rows = [
        {"arm_id": f"{PREFIX}{model}"} | as_row(key, statistic, method)
        for model, found in means.items()
        for key, statistic in found.items()
    ]
    for first, second in combinations(sorted(means), 2):
        ours, theirs = means[first], means[second]
        for key in [key for key in ours if key in theirs and key[0] in COMPARED]:
            difference = Statistic(ours[key].values - theirs[key].values, ours[key].basis)
            arms = {"arm_id": f"{PREFIX}{first}", "versus_arm_id": f"{PREFIX}{second}"}
            rows.append(arms | as_row(key, difference, method))
    return rows


def model_means(
    statistics: Mapping[str, Mapping[Key, Statistic]], protocols: Mapping[str, Sequence[str]]
) -> dict[Key, Statistic]:
    """Tier statistics of a model: means over its protocols, of each the mean over its seeds."""
    found = {}
    for key in ((metric, tier) for tier in TIERS for metric in METRICS):
        having = {
            protocol: [statistics[arm][key] for arm in arms if key in statistics[arm]]
            for protocol, arms in sorted(protocols.items())
        }
        having = {protocol: parts for protocol, parts in having.items() if parts}
        if having:
            values = [np.mean([part.values for part in parts], axis=0) for parts in having.values()]
            found[key] = Statistic(np.mean(values, axis=0), _basis(having))
    return found


def _basis(having: Mapping[str, Sequence[Statistic]]) -> Basis:
    all_parts = [part.basis for parts in having.values() for part in parts]
    return Basis(
        n_items=sum(part.n_items for part in all_parts),
        n_patients=max(part.n_patients for part in all_parts),
        n_parse_error=sum(part.n_parse_error for part in all_parts),
        n_refusal=sum(part.n_refusal for part in all_parts),
        note=f"mean over selection protocols {' '.join(having)} ({len(all_parts)} arms)",
        n_effective=min(part.n_effective for part in all_parts),
    )
