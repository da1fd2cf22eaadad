"""Ranges of scores over the levels of each varied factor (protocol 16.9, 16.10)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np

from cardiolens.score.claims.analysis import Analysis, single_arm_rows
from cardiolens.score.statistics.factors import ArmFactors, factors_of
from cardiolens.score.statistics.rows import Row

NAME = "spread"
_VARIED = ("protocol", "seed", "budget", "prompt", "wording")


def spread(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """Mean and largest range of a model's tier score over the levels of one factor, all others fixed.

    Descriptive, not tested. Differences between seeds of one protocol are chance alone, so a range
    over selections that is no wider than that over seeds says nothing about selections.
    """
    labels = factors_of(arms)
    points = [
        (_levels(labels[str(row["arm_id"])]), str(row["scope"]), float(str(row["value"])))
        for row in single_arm_rows(scores)
        if row["metric"] == "primary" and str(row["scope"]).startswith("tier:") and row["arm_id"] in labels
    ]
    points = [point for point in points if point[0]["control"] == "none" and not np.isnan(point[2])]
    return Analysis(NAME, [row for factor in _VARIED for row in _of_factor(factor, points)])


def _levels(arm: ArmFactors) -> dict[str, str]:
    levels = {name: str(value) for name, value in asdict(arm).items()}
    protocol, _, seed = levels.pop("selector").partition("@")
    return levels | {"protocol": protocol, "seed": seed}


def _of_factor(factor: str, points: Sequence[tuple[Mapping[str, str], str, float]]) -> Iterator[Row]:
    """Yield one row per model and tier; protocols are compared by their mean over seeds."""
    other_factors = ("model", *(name for name in _VARIED if name not in (factor, "seed")))
    if factor != "protocol":
        other_factors = (*other_factors, "seed") if factor != "seed" else other_factors
    values: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for levels, scope, value in points:
        if factor == "seed" and not levels["seed"]:
            continue
        key = (levels["model"], scope, *(levels[name] for name in other_factors[1:]))
        values.setdefault(key, {}).setdefault(levels[factor], []).append(value)
    ranges: dict[tuple[str, str], list[float]] = {}
    names: dict[tuple[str, str], set[str]] = {}
    for (model, scope, *_), by_level in values.items():
        if len(by_level) > 1:
            means = [float(np.mean(level_values)) for level_values in by_level.values()]
            ranges.setdefault((model, scope), []).append(max(means) - min(means))
            names.setdefault((model, scope), set()).update(by_level)
    for (model, scope), widths in sorted(ranges.items()):
        yield {
            "model": model,
            "scope": scope,
            "factor": factor,
            "levels": len(names[model, scope]),
            "settings": len(widths),
            "mean_range": float(np.mean(widths)),
            "max_range": max(widths),
        }
