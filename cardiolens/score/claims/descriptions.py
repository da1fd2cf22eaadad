"""Tables that describe and do not test: collapse, confidence curves, ranges, hospitals (8.4)."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cardiolens.score.claims.parts_of_cohort import SITE
from cardiolens.score.statistics.confidence import BIN, BINS, RISK
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.items import FEWEST_HOSPITALS
from cardiolens.score.statistics.metrics import is_collapsed
from cardiolens.score.statistics.statistic import Row

COLLAPSE_INDICES = (
    *("collapse_index", "modal_share", "modal_excess", "absorption"),
    *("entropy", "entropy_deficit", "shift", "unparsed"),
)
_VARIED = ("protocol", "seed", "budget", "prompt", "wording")
_SUBTASK = "subtask:"
_WORDS = {2: "two", 3: "three", 4: "four"}
Point = tuple[ArmFactors, str, float]  # arm, scope, score


def collapse_rows(scores: Sequence[Row]) -> Iterator[Row]:
    """Yield the indices of collapse of every subtask with one right option, and whether it has collapsed."""
    indices: dict[tuple[str, str], dict[str, Row]] = {}
    for row in scores:
        if row["metric"] in COLLAPSE_INDICES and row["scope"].startswith(_SUBTASK):
            indices.setdefault((row["arm_id"], row["scope"]), {})[row["metric"]] = row
    for (arm, scope), of_place in sorted(indices.items()):
        if "collapse_index" not in of_place:
            continue
        fractions = {name: row["value"] / 100 for name, row in of_place.items()}
        excess = of_place["modal_excess"]
        names = {"arm_id": arm, "scope": scope}
        values = {name: row["value"] for name, row in of_place.items()}
        ends = {"excess_low": excess["low"], "excess_high": excess["high"]}
        flag = is_collapsed(fractions, excess["low"] / 100)
        yield names | values | ends | {"collapsed": flag, "n_items": excess["n_items"]}


def calibration_rows(scores: Sequence[Row]) -> list[Row]:
    """The calibration curve: items, mean confidence and accuracy of each tenth of confidence."""
    points: dict[tuple[str, str, int], dict[str, Any]] = {}
    for row in scores:
        kind, _, rest = row["metric"].partition(".")
        number, _, quantity = rest.partition(".")
        if kind == BIN and quantity:
            point = points.setdefault((row["arm_id"], row["scope"], int(number)), {})
            point[quantity] = row["value"]
            if quantity == "accuracy":
                point |= {name: row[name] for name in ("low", "high", "n_items", "n_patients")}
    return [
        {"arm_id": arm, "scope": scope, "from": 100 * (at - 1) // BINS, "to": 100 * at // BINS, **point}
        for (arm, scope, at), point in sorted(points.items())
    ]


def risk_rows(scores: Sequence[Row]) -> list[Row]:
    """The risk-coverage curve: error rate among the most confident answers, by share of answers kept."""
    rows = []
    for row in scores:
        kind, _, coverage = row["metric"].partition(".")
        if kind == RISK:
            names = ("arm_id", "scope", "low", "high", "n_items", "n_patients")
            rows.append(
                {name: row[name] for name in names} | {"coverage": int(coverage), "risk": row["value"]}
            )
    return sorted(rows, key=lambda row: (row["arm_id"], row["scope"], row["coverage"]))


def range_rows(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> list[Row]:
    """Mean and largest range of a model's tier score over the levels of one factor, all others fixed.

    Differences between seeds of one protocol are chance alone, so a range over selections that is no wider
    than that over seeds says nothing about selections.
    """
    labels = {arm.arm_id: arm for arm in arms if arm.control == "none"}
    points = [
        (labels[row["arm_id"]], row["scope"], row["value"])
        for row in scores
        if row["metric"] == "primary" and row["scope"].startswith("tier:") and row["arm_id"] in labels
    ]
    points = [point for point in points if not math.isnan(point[2])]
    return [row for factor in _VARIED for row in _ranges(factor, points)]


def _levels(arm: ArmFactors) -> dict[str, str]:
    protocol, _, seed = arm.selector.partition("@")
    others = {"budget": arm.budget, "prompt": arm.prompt, "wording": arm.wording}
    return {"protocol": protocol, "seed": seed, **others}


def _ranges(factor: str, points: Sequence[Point]) -> Iterator[Row]:
    """Yield one row per model and tier; protocols are compared by their mean over seeds."""
    averaged = ("protocol", "seed") if factor == "protocol" else (factor,)
    values: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for arm, scope, value in points:
        levels = _levels(arm)
        if levels[factor] or factor != "seed":
            others = (level for name, level in levels.items() if name not in averaged)
            by_level = values.setdefault((arm.model, scope, *others), {})
            by_level.setdefault(levels[factor], []).append(value)
    widths: dict[tuple[str, str], list[float]] = {}
    names: dict[tuple[str, str], set[str]] = {}
    for (model, scope, *_), by_level in values.items():
        if len(by_level) > 1:
            means = [float(np.mean(level_values)) for level_values in by_level.values()]
            widths.setdefault((model, scope), []).append(max(means) - min(means))
            names.setdefault((model, scope), set()).update(by_level)
    for (model, scope), of_place in sorted(widths.items()):
        counts = {"levels": len(names[model, scope]), "settings": len(of_place)}
        sizes = {"mean_range": float(np.mean(of_place)), "max_range": max(of_place)}
        yield {"model": model, "scope": scope, "factor": factor} | counts | sizes


def hospital_rows(subgroups: Mapping[str, Mapping[str, Collection[str]]], n_patients: int) -> list[Row]:
    """One row with a sentence where the patients are known to come from two or more hospitals, else none.

    Hospitals are not named: a small one could identify patients.
    """
    by_site = {name: patients for name, patients in subgroups.get(SITE, {}).items() if patients}
    if len(by_site) < 2:
        return []
    n_known = len({patient for patients in by_site.values() for patient in patients})
    among = "" if n_known == n_patients else f" (known for {n_known} of {n_patients} patients)"
    words = f"The patients come from {_WORDS.get(len(by_site), len(by_site))} hospitals{among}: "
    if len(by_site) < FEWEST_HOSPITALS:
        words += (
            "scores, intervals and claims speak of these hospitals alone. Intervals are over patients; how "
            f"much other hospitals differ cannot be estimated from fewer than {FEWEST_HOSPITALS}."
        )
    elif among:
        words += (
            "scores, intervals and claims are over patients, as if hospitals did not differ, since not every "
            "patient's is known."
        )
    else:
        words += (
            "scores, intervals and claims of arms, models and questions take hospitals as random, with the t "
            f"distribution of {len(by_site)} hospitals. Confidence, positions, parts and subgroups are over "
            "patients."
        )
    return [{"hospitals": len(by_site), "n_patients": n_known, "sentence": words}]
