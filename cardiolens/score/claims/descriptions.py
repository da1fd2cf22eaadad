"""Tables that describe and do not test: collapse, confusion, curves, ranges, hospitals, difficulty (8.4)."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.score.claims.parts_of_cohort import SITE
from cardiolens.score.statistics.confidence import BIN, BINS, RISK
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.items import FEWEST_HOSPITALS, ArmAnswers, Floats
from cardiolens.score.statistics.metrics import is_collapsed, ratio
from cardiolens.score.statistics.statistic import Row
from cardiolens.score.statistics.verdict_rows import Verdicts

COLLAPSE_INDICES = (
    *("collapse_index", "modal_share", "modal_excess", "absorption"),
    *("entropy", "entropy_deficit", "shift", "unparsed"),
)
_VARIED = ("protocol", "seed", "budget", "prompt", "wording")
_SUBTASK = "subtask:"
_WORDS = {2: "two", 3: "three", 4: "four"}
# With two readers discrimination is always 1 or -1, and an item that few readers get wrong is hard for
# them, not suspect in itself.
FEWEST_READERS = 3
JOINT = "D01+D02"  # seven classes: A Normal, B ICM, and the subtypes of C (NICM) as CA to CE
_UNPARSED = "unparsed"
_OF_CONFUSION = ("arm_id", "study_id", "subtask", "answer_type", "status", "gold", "parsed")
_CELL = ("arm_id", "subtask", "gold", "predicted")


def collapse_rows(scores: Sequence[Row]) -> Iterator[Row]:
    """Yield the indices of collapse of every subtask with one right option, and whether it has collapsed."""
    indices: dict[tuple[str, str], dict[str, Row]] = {}
    for row in scores:
        if row["metric"] in COLLAPSE_INDICES and row["scope"].startswith(_SUBTASK):
            indices.setdefault((row["arm_id"], row["scope"]), {})[row["metric"]] = row
    for (arm, scope), by_name in sorted(indices.items()):
        if "collapse_index" not in by_name:
            continue
        values = {name: row["value"] for name, row in by_name.items()}
        excess = by_name["modal_excess"]
        flag = is_collapsed({name: value / 100 for name, value in values.items()}, excess["low"] / 100)
        ends = {"excess_low": excess["low"], "excess_high": excess["high"]}
        names = {"arm_id": arm, "scope": scope}
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
    names = ("arm_id", "scope", "low", "high", "n_items", "n_patients")
    rows = [
        {name: row[name] for name in names} | {"coverage": int(coverage), "risk": row["value"]}
        for row in scores
        for kind, _, coverage in [row["metric"].partition(".")]
        if kind == RISK
    ]
    return sorted(rows, key=lambda row: (row["arm_id"], row["scope"], row["coverage"]))


def range_rows(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> list[Row]:
    """Mean and largest range of a model's tier score over the levels of one factor, all others fixed.

    Differences between seeds of one protocol are chance alone, so a range over selections that is no wider
    than that over seeds says nothing about selections. Protocols are compared by their mean over seeds.
    """
    levels = {arm.arm_id: _levels(arm) for arm in arms if arm.control == "none"}
    points = [
        (levels[row["arm_id"]], row["scope"], row["value"])
        for row in scores
        if row["metric"] == "primary" and row["scope"].startswith("tier:") and row["arm_id"] in levels
    ]
    return [row for factor in _VARIED for row in _ranges(factor, points)]


def _levels(arm: ArmFactors) -> dict[str, str]:
    protocol, _, seed = arm.selector.partition("@")
    others = {"budget": arm.budget, "prompt": arm.prompt, "wording": arm.wording}
    return {"model": arm.model, "protocol": protocol, "seed": seed, **others}


def _ranges(factor: str, points: Sequence[tuple[Mapping[str, str], str, float]]) -> Iterator[Row]:
    """Yield one row per model and tier, from levels, scope and score of each arm."""
    averaged = (factor, "seed") if factor == "protocol" else (factor,)
    values: dict[tuple[str, ...], dict[str, list[float]]] = {}  # by setting, then level
    for levels, scope, value in points:
        if not math.isnan(value) and (levels[factor] or factor != "seed"):
            others = (level for name, level in levels.items() if name not in averaged)
            values.setdefault((scope, *others), {}).setdefault(levels[factor], []).append(value)
    settings: dict[tuple[str, str], list[dict[str, list[float]]]] = {}
    for (scope, model, *_), by_level in values.items():
        if len(by_level) > 1:
            settings.setdefault((model, scope), []).append(by_level)
    for (model, scope), found in sorted(settings.items()):
        means = [[float(np.mean(scores)) for scores in by_level.values()] for by_level in found]
        widths = [max(of_setting) - min(of_setting) for of_setting in means]
        counts = {"levels": len(set[str]().union(*found)), "settings": len(found)}
        sizes = {"mean_range": float(np.mean(widths)), "max_range": max(widths)}
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


def item_difficulty(answers: ArmAnswers, arms: Sequence[ArmFactors]) -> list[Row]:
    """Difficulty and discrimination of choice items by subtask.

    A reader's result on an item is its share of exact answers over the arms without control. `difficulty` is
    the mean over readers, in percent right; `discrimination` the correlation over readers of an item with all
    other items of its tier, averaged over items where it is defined. Simulated readers count only if there
    is no other: a reader of the truth gets everything right.
    """
    eligible = [arm for arm in arms if arm.control == "none"]
    eligible = [arm for arm in eligible if not arm.simulated] or eligible
    readers = list(dict.fromkeys(arm.model for arm in eligible))
    counts = np.zeros((2, answers.n_questions, len(readers)))  # right, and judged
    tier, subtask = np.zeros(answers.n_questions, np.int64), np.full(answers.n_questions, "", object)
    for arm in eligible:
        items, reader = answers.judged(arm.arm_id).items, readers.index(arm.model)
        counts[0, items.question, reader] += items.gold == items.parsed
        counts[1, items.question, reader] += 1
        tier[items.question], subtask[items.question] = items.tier, items.subtask
    asked = counts[1].any(axis=1)
    shares, tier, subtask = ratio(*counts[:, asked]), tier[asked], subtask[asked]
    shares = shares[:, ~np.isnan(shares).all(axis=0)]
    discrimination = np.full(len(shares), np.nan)
    for number in np.unique(tier):
        discrimination[tier == number] = _discrimination(shares[tier == number])
    rows: list[Row] = []
    for _, name in sorted({*zip(tier.tolist(), subtask.tolist(), strict=True)}):
        is_own = subtask == name
        own, defined = shares[is_own], discrimination[is_own]
        rates, defined = np.nanmean(own, axis=1), defined[~np.isnan(defined)]
        rows.append(
            {
                "scope": f"subtask:{name}",
                "n_items": len(own),
                "readers": int((~np.isnan(own)).any(axis=0).sum()),
                "difficulty": 100 * float(rates.mean()),
                "easiest": 100 * float(rates.max()),
                "hardest": 100 * float(rates.min()),
                "never_right": int((np.nanmax(own, axis=1) == 0).sum()),
                "discrimination": float(defined.mean()) if len(defined) else float("nan"),
                "n_discrimination": len(defined),
            }
        )
    return rows


def _discrimination(results: Floats) -> Floats:
    """Correlation of each item with the mean of all others, over readers that answered every item."""
    complete = results[:, ~np.isnan(results).any(axis=0)]
    n_items, readers = complete.shape
    if readers < FEWEST_READERS or n_items < 2:
        return np.full(len(results), np.nan)
    rest = (complete.sum(axis=0) - complete) / (n_items - 1)
    item, rest = complete - complete.mean(axis=1, keepdims=True), rest - rest.mean(axis=1, keepdims=True)
    spread = np.sqrt((item**2).sum(axis=1) * (rest**2).sum(axis=1))
    # undefined for an item with the same result for all readers
    correlations: Floats = np.full(n_items, np.nan)
    np.divide((item * rest).sum(axis=1), spread, out=correlations, where=spread > 1e-12)
    return correlations


def confusion_rows(verdicts: Verdicts) -> list[Row]:
    """Count each predicted option for each gold one, by arm and subtask, without zero cells.

    `D01+D02` joins both diagnoses of a study. The subtype is asked only where NICM is true, so that a study
    wrongly called NICM is predicted `C`.
    """
    cells = [row for rows in verdicts.blocks(_OF_CONFUSION) for row in _rows(rows)]
    return sorted(cells, key=lambda row: [str(row[name]) for name in _CELL])


def _rows(verdicts: pa.Table) -> list[Row]:
    """The rows of whole arms."""
    one_right = pc.is_in(verdicts["answer_type"], pa.array(["single", "ordinal"]))
    judged = verdicts.filter(pc.and_(one_right, pc.equal(verdicts["status"], "judged")))
    predicted = pc.binary_join(judged["parsed"], "")
    answers = pa.table(
        {
            **{name: judged[name] for name in ("arm_id", "subtask", "study_id")},
            "gold": pc.binary_join(judged["gold"], ""),
            "predicted": pc.if_else(pc.equal(predicted, ""), _UNPARSED, predicted),
        }
    )
    cells = pa.concat_tables([answers.select(list(_CELL)), _joint(answers)])
    counts = cells.group_by(list(_CELL)).aggregate([([], "count_all")])
    rows: list[Row] = counts.rename_columns([*_CELL, "n"]).to_pylist()
    return rows


def _joint(answers: pa.Table) -> pa.Table:
    """One cell per study and arm with a judged D01 and, if the gold is NICM, a judged D02."""
    first, second = (
        answers.filter(pc.equal(answers["subtask"], subtask)).drop_columns("subtask")
        for subtask in ("D01", "D02")
    )
    both = first.join(second, ["arm_id", "study_id"], right_suffix="_subtype")
    both = both.filter(pc.or_(pc.not_equal(both["gold"], "C"), pc.is_valid(both["gold_subtype"])))
    subtype = pc.if_else(pc.equal(both["predicted"], "C"), both["predicted_subtype"], "")
    return pa.table(
        {
            "arm_id": both["arm_id"],
            "subtask": pa.repeat(JOINT, both.num_rows),
            "gold": pc.binary_join_element_wise(both["gold"], pc.fill_null(both["gold_subtype"], ""), ""),
            "predicted": pc.binary_join_element_wise(both["predicted"], pc.fill_null(subtype, ""), ""),
        }
    )
