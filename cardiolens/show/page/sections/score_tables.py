"""Tables on scores: models by tier, and the score of each model on each subtask."""

from collections.abc import Iterator

import numpy as np

from cardiolens.config.dataset import JOIN
from cardiolens.protocol.tasks.questions import LESION
from cardiolens.score.claims.sentences import chance, signed
from cardiolens.score.statistics import item_scores as scores
from cardiolens.score.statistics.arm_statistics import FIELD_METRICS, SET_ACCURACY
from cardiolens.score.statistics.factors import why_no_headline
from cardiolens.score.statistics.hypothesis_tests import kendall
from cardiolens.show.page.columns import cells, model_of, of_arms
from cardiolens.show.page.elements import Record
from cardiolens.show.page.page_data import Facts

_MEASURES = {"primary": "score", "primary.skill": "skill", "primary.constant": "best constant answer"}
_RECALLS = {
    **{f"recall_at_{place}": f"true name among the first {place}" for place in scores.PLACES},
    scores.RECIPROCAL: "mean reciprocal rank, times 100",
}
_OF_NUMBERS = (
    *(scores.ERROR, scores.WITHIN, scores.BIAS, *scores.LIMITS),
    *(scores.CONSTANT, scores.CONSTANT_WITHIN, scores.GAIN),
)


def headlines(facts: Facts) -> list[Record]:
    """Headlines of models on every tier."""
    rows = [row for row in facts.scores_of(tuple(_MEASURES), "tier:") if model_of(row)]
    return [cells(facts, row) | {"measure": _MEASURES[row["metric"]]} for row in rows]


def on_landscape(facts: Facts) -> Iterator[str]:
    """Whether tiers 1 and 3 rank the models alike; without headlines, why there are none."""
    rows = facts.scores_of(["primary"], "tier:")
    if not any(map(model_of, rows)) and (rows or facts.scores_of(["primary"], "sequence:")):
        yield why_no_headline(facts.arms)
    values: dict[str, dict[str, float]] = {}
    for row in rows:
        if (model := model_of(row)) and model not in facts.simulated:
            values.setdefault(model, {})[row["scope"]] = row["value"]
    pairs = np.array([[of.get("tier:1", np.nan), of.get("tier:3", np.nan)] for of in values.values()])
    defined = pairs.reshape(-1, 2)[~np.isnan(pairs.reshape(-1, 2)).any(axis=1)]
    tau, p = kendall(*defined.T)
    if not np.isnan(p):
        over = f"over {len(defined)} models ({chance(p)})."
        yield f"Ranks of models on tiers 1 and 3: Kendall's tau {signed(tau, 2)} {over}"


def arm_scores(facts: Facts) -> list[Record]:
    """Scores and skill of every arm at tiers and sequences."""
    rows = of_arms(facts, tuple(_MEASURES), "tier:", "sequence:")
    return [row | {"measure": _MEASURES[row["metric"]]} for row in rows]


def subtask_scores(facts: Facts) -> list[Record]:
    """Primary metric of every subtask."""
    return of_arms(facts, ["primary"], "subtask:")


def on_subtasks(facts: Facts) -> Iterator[str]:
    """Which protocols were asked together."""
    names = str(facts.manifests[0]["protocol"]).split(JOIN)
    if len(names) > 1:
        yield (
            f"{' and '.join(names)} were asked of the same studies. Tier 1 and the sequences are means over "
            "the subtasks of both; the rows 'protocol' of the field scores are of one each."
        )


def field_scores(facts: Facts) -> list[Record]:
    """Scores by protocol, type and view, as the authors' public program has them."""
    records: dict[tuple[object, object], Record] = {}
    for row in of_arms(facts, FIELD_METRICS, "protocol:", "type:", "view:"):
        record = records.setdefault((row["arm_id"], row["scope"]), {})
        record[row["metric"]] = row["value"]
        if row["metric"] == SET_ACCURACY:
            record |= row
    return list(records.values())


def numbers(facts: Facts) -> list[Record]:
    """Errors and agreement of numbers, beside those of the constant reader."""
    records: dict[tuple[object, object], Record] = {}
    for row in facts.scores_of(_OF_NUMBERS, "subtask:"):
        subtask = facts.subtasks.get(str(row["scope"]).removeprefix("subtask:"))
        arm = facts.arm(row["arm_id"])
        if arm is None or arm.control == LESION or subtask is None or subtask.quantity is None:
            continue
        metric, unit = str(row["metric"]), subtask.quantity.unit
        record = records.setdefault((row["arm_id"], row["scope"]), {})
        record |= {metric: row["value"], f"{metric}_low": row["low"], f"{metric}_high": row["high"]}
        if metric == scores.ERROR:
            record |= cells(facts, row)
            tolerance = f"{subtask.quantity.tolerance:g} {unit}"
            record |= {"line": record["arm"], "unit": unit, "tolerance": tolerance}
    return [row for row in records.values() if "line" in row]


def rankings(facts: Facts) -> list[Record]:
    """Recalls of names among the first of a ranking."""
    rows = of_arms(facts, list(_RECALLS), "subtask:")
    return [row | {"line": row["arm"], "measure": _RECALLS[row["metric"]]} for row in rows]
