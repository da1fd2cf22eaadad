"""Tables on scores, on differences and on single answers; each function has the name of its table."""

from collections.abc import Collection, Iterator

import numpy as np

from cardiolens.base.phrasing import counted
from cardiolens.config.dataset import JOIN
from cardiolens.protocol.tasks.questions import LESION
from cardiolens.score.claims import declared
from cardiolens.score.claims.sentences import chance, signed
from cardiolens.score.statistics import item_scores as scores
from cardiolens.score.statistics.arm_statistics import FIELD_METRICS, SET_ACCURACY
from cardiolens.score.statistics.factors import FACTORS, why_no_headline
from cardiolens.score.statistics.hypothesis_tests import kendall
from cardiolens.show.page.columns import (
    answer_words,
    cells,
    model_of,
    of_analysis,
    of_arms,
    setting,
    subtask_words,
)
from cardiolens.show.page.elements import Record, described
from cardiolens.show.page.page_data import Facts

_OF_NUMBERS = (
    *(scores.ERROR, scores.WITHIN, scores.BIAS, *scores.LIMITS),
    *(scores.CONSTANT, scores.CONSTANT_WITHIN, scores.GAIN),
)
_DIAGNOSES = ("D01", "D02", "D01+D02")


def measured(facts: Facts, name: str) -> Iterator[Record]:
    """The scores of arms or headlines that a table names, with its words for metrics, and their options."""
    table = described("tables.yaml")[name]
    words, of_headlines = table["measures"], table.get("of") == "headlines"
    rows = (row for scope in table["scores"] for row in facts.scores_of(words, scope))
    for row in rows:
        if model_of(row) if of_headlines else facts.arm(row["arm_id"]):
            stem, _, option = row["metric"].partition(".")
            measure = words.get(row["metric"]) or words[f"{stem}."]
            yield cells(facts, row) | {"measure": measure, "option": option}


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
    return _wide(facts, FIELD_METRICS, SET_ACCURACY, "protocol:", "type:", "view:")


def numbers(facts: Facts) -> Iterator[Record]:
    """Errors and agreement of numbers, beside those of the constant reader."""
    for row in _wide(facts, _OF_NUMBERS, scores.ERROR, "subtask:"):
        subtask = facts.subtasks.get(row["scope"])
        if subtask is not None and subtask.quantity is not None and row["control"] != LESION:
            unit = subtask.quantity.unit
            tolerance = f"{subtask.quantity.tolerance:g} {unit}"
            yield row | {"unit": unit, "tolerance": tolerance}


def _wide(facts: Facts, metrics: Collection[str], first: str, *scopes: str) -> list[Record]:
    """A row for each arm and scope: the cells of its first metric, and every metric with its interval."""
    records: dict[tuple[str, str], Record] = {}
    for row in of_arms(facts, metrics, *scopes):
        metric = row["metric"]
        record = records.setdefault((row["arm_id"], row["scope"]), {})
        record |= {metric: row["value"], f"{metric}_low": row["low"], f"{metric}_high": row["high"]}
        if metric == first:
            record |= row
    return [record for record in records.values() if "arm" in record]


def questions(facts: Facts) -> list[Record]:
    """Answers over all models, and those of each of several models."""
    rows = [
        row
        for row in facts.findings
        if row["factor"] not in ("model", "tier", "cohort") and row["family"] != declared.FAMILY
    ]
    models = {row["model"] for row in rows if row["model"]}
    if len(models) == 1:  # it is the mean over all models
        rows = [row for row in rows if not row["model"]]
    pooled = "all models" if len(models) > 1 else "".join(models)
    return [cells(facts, row) | {"line": row["model"] or pooled} for row in rows]


def slice_scores(facts: Facts) -> list[Record]:
    """Scores over slice budgets; none with a single one."""
    rows = [row for row in of_arms(facts, ["primary"], "tier:") if row["control"] == "none"]
    return rows if len({row["budget"] for row in rows}) > 1 else []


def pairs(facts: Facts) -> Iterator[Record]:
    """Every pair of arms that differ in one factor; models with images come first."""
    rows = sorted(facts.pairs(), key=lambda row: (FACTORS.index(row["factor"]), facts.place(row["arm_id"])))
    for row in rows:
        arm = facts.arm(row["arm_id"])
        if arm is not None and row["factor"] != "model":
            row_cells = cells(facts, row)
            yield row_cells | {"line": f"{row_cells['comparison']} · {setting(arm, row['factor'])}"}


def control_measures(facts: Facts) -> Iterator[Record]:
    """Answers under controls: repetition, order of options, lesions."""
    for row in measured(facts, "control_measures"):
        place = f", place {row['option']}" if row["option"] else ""
        yield row | {"metric": row["measure"] + place}


def cohort_differences(facts: Facts) -> list[Record]:
    """Headlines on the full cohort against parts of it."""
    rows = [row for row in facts.findings if row["factor"] == "cohort" and row["metric"] == "primary"]
    return [
        row | {"part": row["versus"], "line": row["model"]} for row in (cells(facts, row) for row in rows)
    ]


def on_dependence(facts: Facts) -> Iterator[str]:
    """Warnings of study preparation, what it inferred where study.json declares nothing, and single draws."""
    counts: dict[str, int] = {}
    for kind, words in (("warnings", "To be looked at"), ("found", "Found in the pixels")):
        for manifest in facts.manifests:
            for message, n_studies in sorted(manifest.get("preparation", {}).get(kind, {}).items()):
                counts[f"{words}: {message}"] = max(n_studies, counts.get(f"{words}: {message}", 0))
    yield from (f"{message} ({counted(n_studies, 'study')})" for message, n_studies in counts.items())
    seeds: dict[str, set[str]] = {}
    for arm in facts.arms:
        if "@" in arm.selector:
            seeds.setdefault(arm.protocol, set()).add(arm.selector)
    if once := sorted(min(selections) for selections in seeds.values() if len(selections) == 1):
        yield f"{', '.join(once)}: drawn with one seed; +experiment=seeds draws five."


def confusion(facts: Facts) -> list[Record]:
    """Confusion matrices, diagnoses first."""
    return [
        row
        | {side: answer_words(facts, row["subtask"], row[side]) for side in ("gold", "predicted")}
        | {"subtask": subtask_words(facts, row["subtask"])}
        for row in _diagnoses_first(of_analysis(facts, "confusion"))
    ]


def collapse_indices(facts: Facts) -> list[Record]:
    """Indices of every subtask with one right option, diagnoses first."""
    rows = _diagnoses_first(of_analysis(facts, "collapse"))
    return [row | {"flag": "collapsed" if row["collapsed"] else ""} for row in rows]


def _diagnoses_first(rows: list[Record]) -> list[Record]:
    return sorted(rows, key=lambda row: row["subtask"].partition(" ")[0] not in _DIAGNOSES)


def confidence(facts: Facts) -> Iterator[Record]:
    """Separation of right from wrong answers, where the engine gave probabilities."""
    for row in measured(facts, "confidence"):
        yield row | {"metric": row["measure"], "line": f"{row['subtask']} {row['option']}".strip()}
