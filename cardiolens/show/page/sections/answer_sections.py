"""Sections on single answers: confusion and collapse, and confidence."""

from typing import Any

from cardiolens.show.page.columns import answer_words, cells, of_analysis, of_arms, subtask_words
from cardiolens.show.page.elements import Chart, Grid, Section, Table
from cardiolens.show.page.page_data import Facts

_DIAGNOSES = ("D01", "D02", "D01+D02")
_MEASURES = {
    "auroc": "AUROC",
    "average_precision": "average precision",
    "calibration_error": "calibration error",
    "risk_area": "risk-coverage area",
}


def collapse(facts: Facts) -> Section:
    """Confusion matrices, diagnoses first, then indices of every subtask with one right option."""
    rows = [row | {"flag": "collapsed" if row["collapsed"] else ""} for row in of_analysis(facts, "collapse")]
    rows.sort(key=lambda row: row["subtask"].partition(" ")[0] not in _DIAGNOSES)
    indices = Table.of("collapse_indices", [row for row in rows if "arm" in row])
    matrices = [row for row in of_analysis(facts, "confusion") if "arm" in row]
    matrices.sort(key=lambda row: row["subtask"] not in _DIAGNOSES)
    table = Table.of("confusion", [_matrix(facts, row) for row in matrices])
    note = "Shares of a row: what was called where the row is true. Numbers are items."
    cells_of = ("gold", "predicted", "n", ("subtask", "arm"), True, note)
    grid = Grid(table.name, table.title, table, *cells_of)
    note = (
        "A subtask counts as collapsed from an index of 30 %, or where one answer holds 80 % and 10 % "
        "too much, if the 95 % interval of that excess lies above 5 points."
    )
    choices = ("subtask", "model")
    chart = Chart("collapse-index", "Collapse index", "index", indices, None, choices, note)
    question = "Does a model default to a few categories, whatever the image shows?"
    return Section("collapse", "Confusion and collapse", question, (grid, chart))


def _matrix(facts: Facts, row: dict[str, Any]) -> dict[str, Any]:
    subtask = row["subtask"]
    words = {side: answer_words(facts, subtask, row[side]) for side in ("gold", "predicted")}
    return {**row, **words, "subtask": subtask_words(facts, subtask)}


def confidence(facts: Facts) -> Section:
    """Separation of right from wrong answers, and calibration, where the engine gave probabilities."""
    records = []
    for row in of_arms(facts, None, "subtask:"):
        metric, _, option = row["metric"].partition(".")
        if metric in _MEASURES:
            line = f"{row['subtask']} {option}".strip()
            records.append(row | {"metric": _MEASURES[metric], "option": option, "line": line})
    table = Table.of("confidence", records)
    calibration, risk = _curve(facts, "calibration"), _curve(facts, "risk and coverage")
    note = "50 %: no better than chance. Rows with an interval, by subtask or option."
    auroc = Chart("auroc-chart", "AUROC", "auroc", table, {"metric": "AUROC"}, ("arm",), note)
    note = "On the dashed line, confidence equals accuracy. Each point is one of ten confidence bins."
    on = ("arm", "on")
    curve = Chart("calibration-curve", "Calibration curve", "calibration_curve", calibration, None, on, note)
    note = "Error rate among the answers that remain when the least confident ones are dropped."
    chart = Chart("risk-curve", "Risk and coverage", "risk", risk, None, on, note)
    question = "When a model is sure, is it right?"
    return Section("confidence", "Confidence", question, (auroc, curve, chart))


def _curve(facts: Facts, analysis: str) -> Table:
    """Points of an analysis in the order of the arms; a tier's points stand before those of its subtasks."""
    rows = [row for row in facts.analysis(analysis) if facts.arm(row["arm_id"])]
    rows.sort(key=lambda row: (facts.place(row["arm_id"]), not row["scope"].startswith("tier:")))
    table_rows = [cells(facts, row) for row in rows]
    records = [row | {"on": row.get("subtask", row["scope"])} for row in table_rows]
    return Table.of(analysis.replace(" ", "_"), records)
