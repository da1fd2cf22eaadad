"""Sections on scores: models by tier, and the score of each model on each subtask."""

import numpy as np

from cardiolens.config.dataset import JOIN
from cardiolens.protocol.tasks.questions import LESION
from cardiolens.score.claims.sentences import chance, signed
from cardiolens.score.statistics import item_scores as scores
from cardiolens.score.statistics.arm_statistics import FIELD_METRICS, SET_ACCURACY
from cardiolens.score.statistics.factors import why_no_headline
from cardiolens.score.statistics.hypothesis_tests import kendall
from cardiolens.show.page.columns import cells, model_of, of_arms
from cardiolens.show.page.elements import Chart, Grid, Section, Table
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


def landscape(facts: Facts) -> Section:
    """Headlines of models on every tier, and the scores of every arm."""
    records = [
        cells(facts, row) | {"measure": _MEASURES[row["metric"]]}
        for row in facts.scores_of(tuple(_MEASURES), "tier:")
        if model_of(row)
    ]
    table = Table.of("headlines", records)
    note = "Headline: slice budget 16, standard prompt; mean over seeds, then over selections."
    score = Chart("landscape-score", "Score", "by_model", table, {"measure": "score"}, note=note)
    note = "Zero: no better than always giving the best constant answer."
    title = "Skill: score beyond the best constant answer"
    skill = Chart("landscape-skill", title, "by_model_signed", table, {"measure": "skill"}, note=note)
    of_every_arm = arm_scores(facts)
    no_headline = (why_no_headline(facts.arms),) if of_every_arm.rows else ()
    return Section(
        "landscape",
        "Landscape",
        "How well does each model read, tier by tier, and how much of it is beyond a constant answer?",
        figures=(score, skill),
        tables=(of_every_arm,),
        notes=_ranks(facts) if records else no_headline,
    )


def _ranks(facts: Facts) -> tuple[str, ...]:
    """Whether tiers 1 and 3 rank the models alike; none with fewer than two."""
    values: dict[str, dict[str, float]] = {}
    for row in facts.scores_of(["primary"], "tier:"):
        if (model := model_of(row)) and model not in facts.simulated:
            values.setdefault(model, {})[row["scope"]] = row["value"]
    pairs = np.array([[of.get("tier:1", np.nan), of.get("tier:3", np.nan)] for of in values.values()])
    defined = pairs.reshape(-1, 2)[~np.isnan(pairs.reshape(-1, 2)).any(axis=1)]
    tau, p = kendall(*defined.T)
    over = f"over {len(defined)} models ({chance(p)})."
    words = f"Ranks of models on tiers 1 and 3: Kendall's tau {signed(tau, 2)} {over}"
    return () if np.isnan(p) else (words,)


def arm_scores(facts: Facts) -> Table:
    """Scores and skill of every arm at tiers and sequences."""
    rows = of_arms(facts, tuple(_MEASURES), "tier:", "sequence:")
    records = [row | {"measure": _MEASURES[row["metric"]]} for row in rows]
    return Table.of("arm_scores", records)


def subtasks(facts: Facts) -> Section:
    """Primary metric of every subtask, one grid per setting; numbers and rankings."""
    table = Table.of("subtask_scores", of_arms(facts, ["primary"], "subtask:"))
    note = "Accuracy, micro-F1 or entity-F1 in percent. Press a model to sort by it."
    choices = ("setting",)
    grid = Grid("subtask-grid", "Subtask by model", table, "subtask", "model", "value", choices, note=note)
    numbers, rankings = _numbers(facts), _rankings(facts)
    note = (
        "Tick: the constant reader, which gives the median of the true numbers. Unread numbers are in no "
        "error."
    )
    open_choice = ("subtask",)
    errors = Chart("number-errors", "Mean absolute error", "number_errors", numbers, None, open_choice, note)
    note = "Thin: bias and 1.96 standard deviations to each side (Bland and Altman). Thick: interval of bias."
    limits = Chart("agreement", "Limits of agreement", "agreement", numbers, None, open_choice, note)
    note = "A name counts if it is the true one or a given synonym, letter by letter: a lower bound."
    recalls = Chart("recalls", "Recall of rankings", "recalls", rankings, None, open_choice, note)
    question = "Which findings can a model read, and which can it not?"
    figures = (grid, errors, limits, recalls)
    return Section("subtasks", "Subtasks", question, figures, (_fields(facts),), _protocols(facts))


def _protocols(facts: Facts) -> tuple[str, ...]:
    names = str(facts.manifests[0]["protocol"]).split(JOIN)
    if len(names) < 2:
        return ()
    return (
        f"{' and '.join(names)} were asked of the same studies. Tier 1 and the sequences are means over the "
        "subtasks of both; the rows 'protocol' of the field scores are of one each.",
    )


def _fields(facts: Facts) -> Table:
    """Scores by protocol, type and view, as the authors' public program has them."""
    records: dict[tuple[object, object], dict[str, object]] = {}
    for row in of_arms(facts, FIELD_METRICS, "protocol:", "type:", "view:"):
        record = records.setdefault((row["arm_id"], row["scope"]), {})
        record[row["metric"]] = row["value"]
        if row["metric"] == SET_ACCURACY:
            record |= row
    return Table.of("field_scores", list(records.values()))


def _numbers(facts: Facts) -> Table:
    records: dict[tuple[object, object], dict[str, object]] = {}
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
            record |= {
                "line": record["arm"],
                "unit": unit,
                "tolerance": f"{subtask.quantity.tolerance:g} {unit}",
            }
    return Table.of("numbers", [row for row in records.values() if "line" in row])


def _rankings(facts: Facts) -> Table:
    records = [
        row | {"line": row["arm"], "measure": _RECALLS[row["metric"]]}
        for row in of_arms(facts, list(_RECALLS), "subtask:")
    ]
    return Table.of("rankings", records)
