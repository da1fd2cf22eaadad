"""Sections on differences: questions over all models, single settings, and what scores depend on."""

from collections.abc import Iterator
from dataclasses import asdict

from cardiolens.base.phrasing import counted
from cardiolens.score.claims import declared
from cardiolens.score.statistics.factors import FACTORS
from cardiolens.score.statistics.item_scores import FOLLOWED, MOVED, ORDER_BIAS, POSITION_BIAS, STRAYED
from cardiolens.score.statistics.scores import ANSWERS_CHANGED
from cardiolens.show.page.columns import arm_cells, cells, of_analysis, of_arms, setting
from cardiolens.show.page.elements import Chart, Section, Table
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


def questions(facts: Facts) -> Section:
    """One forest of models under each answer."""
    rows = [
        row
        for row in facts.findings
        if row["factor"] not in ("model", "tier", "cohort") and row["family"] != declared.FAMILY
    ]
    models = {row["model"] for row in rows if row["model"]}
    if len(models) == 1:  # it is the mean over all models
        rows = [row for row in rows if not row["model"]]
    pooled = "all models" if len(models) > 1 else "".join(models)
    records = [cells(facts, row) | {"line": row["model"] or pooled} for row in rows]
    table = Table.of("questions", records)
    note = "Grey band: ±2 points."
    if len(models) > 1:
        note += " First line: the mean over all models, of equal weight; below it each model."
    choices = ("comparison", "scope", "metric")
    chart = Chart("questions-chart", "Difference over all models", "forest", table, None, choices, note)
    question = "What do selection, slice budget, prompt and images do, over all models of this run?"
    return Section("questions", "Questions over all models", question, (chart,))


def explored(facts: Facts) -> Section:
    """One line per selection over slice budgets, and one table of all pairs that differ in one factor."""
    scores = [row for row in of_arms(facts, ["primary"], "tier:") if row["control"] == "none"]
    if len({row["budget"] for row in scores}) < 2:
        scores = []
    lines = Table.of("slice_scores", scores)
    note = "Bars are 95 % intervals over patients; arms share patients, so read differences below."
    by_budget = Chart("slice-lines", lines.title, "lines", lines, None, ("model", "prompt"), note)
    pairs = Table.of("pairs", list(_pairs(facts)))
    note = "Grey band: ±2 points. The thick line is the 90 % interval. Single settings are explored."
    choices, title = ("factor", "model", "scope", "metric"), "Every pair of arms that differ in one factor"
    forest = Chart("pairs-chart", title, "forest", pairs, None, choices, note)
    question = "Does it matter which slices a model sees, how many, and how it is asked?"
    tables = (_measures(facts), _choices(facts))
    return Section("explored", "Single settings", question, (by_budget, forest), tables)


def _pairs(facts: Facts) -> Iterator[dict[str, object]]:
    """Yield a record for each pair; models with images come first."""
    rows = sorted(facts.pairs(), key=lambda row: (FACTORS.index(row["factor"]), facts.place(row["arm_id"])))
    for row in rows:
        arm = facts.arm(row["arm_id"])
        if arm is not None and row["factor"] != "model":
            row_cells = cells(facts, row)
            yield row_cells | {"line": f"{row_cells['comparison']} · {setting(arm, row['factor'])}"}


def _measures(facts: Facts) -> Table:
    records = []
    for row in of_arms(facts, None, "tier:"):
        metric, _, place = row["metric"].partition(".")
        if metric in {*_MEASURES, POSITION_BIAS}:
            records.append(row | {"metric": _MEASURES.get(metric, f"position bias, place {place}")})
    return Table.of("control_measures", records)


def _choices(facts: Facts) -> Table:
    """Frame requests of readers that choose their frames."""
    records = [
        asdict(counts) | arm_cells(arm, facts.simulated)
        for counts in facts.choices
        if (arm := facts.arm(counts.arm_id))
    ]
    return Table.of("choices", records)


def dependence(facts: Facts) -> Section:
    """Headlines on parts and subgroups of the cohort, ranges by what was varied, and difficulty of items."""
    rows = [row for row in facts.findings if row["factor"] == "cohort" and row["metric"] == "primary"]
    table_rows = [cells(facts, row) for row in rows]
    records = [row | {"part": row["versus"], "line": row["model"]} for row in table_rows]
    parts = Table.of("cohort_differences", records)
    spread = [row | {"factor": _VARIED[row["factor"]]} for row in of_analysis(facts, "spread")]
    tables = (
        Table.of("gold_shifts", of_analysis(facts, "gold shifts")),
        Table.of("subgroups", of_analysis(facts, "subgroups")),
        Table.of("spread", spread),
        Table.of("item_difficulty", of_analysis(facts, "item difficulty")),
    )
    return Section(
        "dependence",
        "What scores depend on",
        "Do the results depend on a part of the cohort, a seed, a wording or an item?",
        figures=(Chart("cohort-differences-chart", parts.title, "forest", parts, choices=("part", "scope")),),
        tables=tables,
        notes=(*_preparation(facts), *_one_seed(facts)),
    )


def _preparation(facts: Facts) -> tuple[str, ...]:
    """Warnings of study preparation, and what it inferred where study.json declares nothing."""
    counts: dict[str, int] = {}
    for kind, words in (("warnings", "To be looked at"), ("found", "Found in the pixels")):
        for manifest in facts.manifests:
            for message, n_studies in sorted(manifest.get("preparation", {}).get(kind, {}).items()):
                counts[f"{words}: {message}"] = max(n_studies, counts.get(f"{words}: {message}", 0))
    return tuple(f"{message} ({counted(n_studies, 'study')})" for message, n_studies in counts.items())


def _one_seed(facts: Facts) -> list[str]:
    """A note on random selections that were drawn once."""
    seeds: dict[str, set[str]] = {}
    for arm in facts.arms:
        if "@" in arm.selector:
            seeds.setdefault(arm.protocol, set()).add(arm.selector)
    once = sorted(min(selections) for selections in seeds.values() if len(selections) == 1)
    return [f"{', '.join(once)}: drawn with one seed; +experiment=seeds draws five."] if once else []
