"""Tables on differences: questions over all models, single settings, and what scores depend on."""

from collections.abc import Iterator

from cardiolens.base.phrasing import counted
from cardiolens.score.claims import declared
from cardiolens.score.statistics.factors import FACTORS
from cardiolens.score.statistics.item_scores import FOLLOWED, MOVED, ORDER_BIAS, POSITION_BIAS, STRAYED
from cardiolens.score.statistics.scores import ANSWERS_CHANGED
from cardiolens.score.statistics.statistic import Row
from cardiolens.show.page.columns import arm_cells, cells, of_analysis, of_arms, setting
from cardiolens.show.page.elements import Record
from cardiolens.show.page.page_data import Facts

_MEASURES = {
    ANSWERS_CHANGED: "answers that change when asked again",
    ORDER_BIAS: "preference for first places, ordinal questions",
    MOVED: "answers that move where the lesion is taken away and the truth moves",
    FOLLOWED: "right both with the lesion and without, of these",
    STRAYED: "answers that move where the truth stays",
}
_VARIED = {
    "protocol": "slice selection",
    "seed": "seed of a selection",
    "budget": "slice budget",
    "prompt": "prompt",
    "wording": "wording of the questions",
}


def questions(facts: Facts) -> list[Record]:
    """Answers over all models, and those of each of several models."""
    rows, models = _answers(facts)
    if len(models) == 1:  # it is the mean over all models
        rows = [row for row in rows if not row["model"]]
    pooled = "all models" if len(models) > 1 else "".join(models)
    return [cells(facts, row) | {"line": row["model"] or pooled} for row in rows]


def on_questions(facts: Facts) -> Iterator[str]:
    """What the lines of the chart are."""
    if len(_answers(facts)[1]) > 1:
        yield "First line: the mean over all models, of equal weight; below it each model."


def _answers(facts: Facts) -> tuple[list[Row], set[str]]:
    """The rows of the questions, and their models."""
    rows = [
        row
        for row in facts.findings
        if row["factor"] not in ("model", "tier", "cohort") and row["family"] != declared.FAMILY
    ]
    return rows, {row["model"] for row in rows if row["model"]}


def slice_scores(facts: Facts) -> list[Record]:
    """Scores over slice budgets; none with a single one."""
    scores = [row for row in of_arms(facts, ["primary"], "tier:") if row["control"] == "none"]
    return scores if len({row["budget"] for row in scores}) > 1 else []


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
    for row in of_arms(facts, None, "tier:"):
        metric, _, place = row["metric"].partition(".")
        if metric in {*_MEASURES, POSITION_BIAS}:
            yield row | {"metric": _MEASURES.get(metric, f"position bias, place {place}")}


def choices(facts: Facts) -> list[Record]:
    """Frame requests of readers that choose their frames."""
    by_arm = {row["arm_id"]: row for row in facts.choices}
    return [by_arm[arm.arm_id] | arm_cells(facts, arm) for arm in facts.arms if arm.arm_id in by_arm]


def cohort_differences(facts: Facts) -> list[Record]:
    """Headlines on the full cohort against parts of it."""
    rows = [row for row in facts.findings if row["factor"] == "cohort" and row["metric"] == "primary"]
    table_rows = [cells(facts, row) for row in rows]
    return [row | {"part": row["versus"], "line": row["model"]} for row in table_rows]


def spread(facts: Facts) -> list[Record]:
    """Ranges by what was varied."""
    return [row | {"factor": _VARIED[row["factor"]]} for row in of_analysis(facts, "spread")]


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
