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
from cardiolens.score.statistics.items import FEWEST_HOSPITALS, Floats
from cardiolens.score.statistics.metrics import is_collapsed, ratio
from cardiolens.score.statistics.statistic import Row
from cardiolens.score.statistics.verdict_rows import Verdicts, blocks

COLLAPSE_INDICES = (
    *("collapse_index", "modal_share", "modal_excess", "absorption"),
    *("entropy", "entropy_deficit", "shift", "unparsed"),
)
_VARIED = ("protocol", "seed", "budget", "prompt", "wording")
_SUBTASK = "subtask:"
_WORDS = {2: "two", 3: "three", 4: "four"}
Point = tuple[ArmFactors, str, float]  # arm, scope, score
# With two readers discrimination is always 1 or -1, and an item that few readers get wrong is hard for
# them, not suspect in itself.
FEWEST_READERS = 3
_COLUMNS = ("qa_id", "subtask", "tier", "channel", "status", "arm_id", "correct")
_ITEM = ("tier", "subtask", "qa_id")
Item = tuple[int, str, str]  # tier, subtask, question
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


def item_difficulty(verdicts: pa.Table | Verdicts, arms: Sequence[ArmFactors]) -> list[Row]:
    """Difficulty and discrimination of choice items by subtask.

    A reader's result on an item is its share of exact answers over the arms without control. `difficulty` is
    the mean over readers, in percent right; `discrimination` the correlation over readers of an item with all
    other items of its tier, averaged over items where it is defined. Simulated readers count only if there
    is no other: a reader of the truth gets everything right.
    """
    eligible = [arm for arm in arms if arm.control == "none"]
    eligible = [arm for arm in eligible if not arm.simulated] or eligible
    items, shares = _shares(verdicts, {arm.arm_id: arm.model for arm in eligible})
    rows: list[Row] = []
    tier, subtask = (np.array([item[at] for item in items]) for at in (0, 1))
    discrimination = np.full(len(items), np.nan)
    for number in np.unique(tier):
        discrimination[tier == number] = _discrimination(shares[tier == number])
    for name in dict.fromkeys(subtask.tolist()):
        of_subtask = shares[subtask == name]
        rates, defined = np.nanmean(of_subtask, axis=1), discrimination[subtask == name]
        defined = defined[~np.isnan(defined)]
        rows.append(
            {
                "scope": f"subtask:{name}",
                "n_items": len(of_subtask),
                "readers": int((~np.isnan(of_subtask)).any(axis=0).sum()),
                "difficulty": 100 * float(rates.mean()),
                "easiest": 100 * float(rates.max()),
                "hardest": 100 * float(rates.min()),
                "never_right": int((np.nanmax(of_subtask, axis=1) == 0).sum()),
                "discrimination": float(defined.mean()) if len(defined) else float("nan"),
                "n_discrimination": len(defined),
            }
        )
    return rows


def _shares(verdicts: pa.Table | Verdicts, reader: dict[str, str]) -> tuple[list[Item], Floats]:
    """The items in order, and the share of exact answers (item, reader), NaN where none was judged."""
    distinct = set[Item]()
    for rows in _judged(verdicts, reader):
        of_rows = rows.group_by(list(_ITEM)).aggregate([])
        distinct.update(zip(*(of_rows[name].to_pylist() for name in _ITEM), strict=True))
    items = sorted(distinct)
    questions = pa.array([item[2] for item in items], pa.string())
    names = list(dict.fromkeys(reader.values()))
    counts = np.zeros((2, len(items), len(names)))
    for rows in _judged(verdicts, reader):
        item = np.asarray(pc.index_in(rows["qa_id"], value_set=questions), np.int64)
        of_row = np.array([names.index(reader[arm]) for arm in rows["arm_id"].to_pylist()], np.int64)
        np.add.at(counts[0], (item, of_row), np.asarray(pc.fill_null(rows["correct"], False), np.float64))
        np.add.at(counts[1], (item, of_row), 1)
    shares = ratio(*counts)
    return items, shares[:, ~np.isnan(shares).all(axis=0)]


def _judged(verdicts: pa.Table | Verdicts, reader: dict[str, str]) -> Iterator[pa.Table]:
    """Yield the judged answers of readers to choice questions."""
    arms = pa.array(list(reader), pa.string())
    for rows in blocks(verdicts, _COLUMNS):
        is_answer = pc.and_(pc.equal(rows["channel"], "answer"), pc.equal(rows["status"], "judged"))
        yield rows.filter(pc.and_(is_answer, pc.is_in(rows["arm_id"], value_set=arms)))


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


def confusion_rows(verdicts: pa.Table | Verdicts) -> list[Row]:
    """Count each predicted option for each gold one, by arm and subtask, without zero cells.

    `D01+D02` joins both diagnoses of a study. The subtype is asked only where NICM is true, so that a study
    wrongly called NICM is predicted `C`.
    """
    cells = [row for rows in blocks(verdicts, _OF_CONFUSION) for row in _rows(rows)]
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
