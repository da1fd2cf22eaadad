"""Section on single settings: scores by slice budget, every pair of arms, and measures of controls."""

from collections.abc import Iterator
from dataclasses import asdict

from cardiolens.score.claims.sentences import SUBJECTS, sides
from cardiolens.score.statistics.control_scores import (
    FOLLOWED,
    MOVED,
    ORDER_BIAS,
    POSITION_BIAS,
    STRAYED,
    SUGGESTIONS,
)
from cardiolens.score.statistics.factors import FACTORS
from cardiolens.score.statistics.scores import ANSWERS_CHANGED
from cardiolens.show.page.columns import (
    ARM,
    COUNTS,
    ESTIMATE,
    HIGH,
    LOW,
    METHOD,
    SCOPE,
    VALUE,
    arm_cells,
    estimate_cells,
    row_cells,
    scope_words,
    setting,
)
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts

_MEASURES = {
    ANSWERS_CHANGED: "answers that change when asked again",
    ORDER_BIAS: "preference for first places, ordinal questions",
    "followed_wrong": "answers that follow a wrong suggestion",
    "followed_wrong_gain": "answers that follow a wrong suggestion, beyond those alike without it",
    "right_to_wrong": "right without, wrong after a wrong suggestion",
    "followed_right": "answers that follow a right suggestion",
    "followed_right_gain": "answers that follow a right suggestion, beyond those alike without it",
    "wrong_to_right": "wrong without, right after a right suggestion",
    MOVED: "answers that move where the lesion is taken away and the truth moves",
    FOLLOWED: "right both with the lesion and without, of these",
    STRAYED: "answers that move where the truth stays",
}
_LINES = (*ARM[:1], ARM[3], *ARM[1:3], SCOPE, VALUE, LOW, HIGH, *COUNTS, METHOD)
_PAIRS = (
    *(Column("factor", "varied"), Column("model", "model"), SCOPE, Column("metric", "measure")),
    *(Column("comparison", "comparison"), Column("line", "setting"), *ESTIMATE, *COUNTS),
    Column("n_same_request", "same request", "count"),
    *(Column("at_once", "on items read at once", "points"), Column("n_at_once", "these items", "count")),
    METHOD,
)
_CONTROLS = (*ARM, Column("metric", "measure"), SCOPE, VALUE, LOW, HIGH, *COUNTS, METHOD)
_CHOICES = (
    *ARM,
    Column("asked", "questions", "count"),
    Column("requests", "requests for frames, mean", "number"),
    Column("frames", "frames shown, mean", "number"),
    Column("refused", "names refused, mean", "number"),
    Column("unanswered", "without a legal request or not yet answered", "count"),
)


def explored(facts: Facts) -> Section:
    """One line per selection over slice budgets, and one table of all pairs that differ in one factor."""
    lines, pairs = _lines(facts), _pairs(facts)
    figures = []
    if len({row[3] for row in lines.rows}) > 1:
        note = "Bars are 95 % intervals over patients; arms share patients, so read differences below."
        title = "Score by slice budget and selection"
        figures.append(Chart("slice-lines", title, "lines", lines, None, ("model", "prompt"), note))
    if pairs.rows:
        note = "Grey band: ±2 points. The thick line is the 90 % interval. Single settings are explored."
        choices = ("factor", "model", "scope", "metric")
        title = "Every pair of arms that differ in one factor"
        figures.append(Chart("pairs-chart", title, "forest", pairs, None, choices, note))
    tables = [table for table in (_measures(facts), _choices(facts)) if table.rows]
    question = "Does it matter which slices a model sees, how many, and how it is asked?"
    return Section("explored", "Single settings", question, figures=tuple(figures), tables=tuple(tables))


def _lines(facts: Facts) -> Table:
    records = [
        row_cells(row) | arm_cells(arm, facts.simulated)
        for row in facts.scores_of(["primary"], "tier:")
        if (arm := facts.arm(row["arm_id"])) and arm.control == "none"
    ]
    return Table.of("slice_scores", "Score by slice budget and selection", _LINES, records)


def _pairs(facts: Facts) -> Table:
    return Table.of("pairs", "Pairs of arms", _PAIRS, list(_pair_records(facts)))


def _pair_records(facts: Facts) -> Iterator[dict[str, object]]:
    """Yield a record for each pair; models with images come first."""
    rows = facts.pairs()
    rows.sort(key=lambda row: (FACTORS.index(row["factor"]), facts.place(row["arm_id"])))
    for row in rows:
        arm = facts.arm(row["arm_id"])
        if arm is None or row["factor"] == "model":
            continue
        star = "*" if arm.model in facts.simulated else ""
        yield {
            **row,
            **estimate_cells(row),
            "at_once": row["read_difference"],
            "n_at_once": row["n_read"],
            "model": f"{arm.model}{star}",
            "scope": scope_words(f"tier:{row['tier']}"),
            "metric": SUBJECTS[row["metric"]],
            "comparison": sides(row),
            "line": f"{sides(row)} · {setting(arm, row['factor'])}",
        }


def _measures(facts: Facts) -> Table:
    records = []
    for row in facts.scores_of(None, "tier:"):
        metric, _, place = row["metric"].partition(".")
        arm = facts.arm(row["arm_id"])
        if arm and metric in {*_MEASURES, *SUGGESTIONS, POSITION_BIAS}:
            name = _MEASURES.get(metric, f"position bias, place {place}")
            records.append(row_cells(row) | arm_cells(arm, facts.simulated) | {"metric": name})
    title = "Repetition, order of options, suggestions, lesions"
    return Table.of("control_measures", title, _CONTROLS, records)


def _choices(facts: Facts) -> Table:
    """Frame requests of readers that choose their frames."""
    records = [
        asdict(counts) | arm_cells(arm, facts.simulated)
        for counts in facts.choices
        if (arm := facts.arm(counts.arm_id))
    ]
    return Table.of("choices", "Readers that chose their frames", _CHOICES, records)
