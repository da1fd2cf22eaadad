"""Tables on single answers: confusion and collapse, and confidence."""

from collections.abc import Iterator
from typing import Any

from cardiolens.show.page.columns import answer_words, cells, of_analysis, of_arms, subtask_words
from cardiolens.show.page.elements import Record
from cardiolens.show.page.page_data import Facts

_DIAGNOSES = ("D01", "D02", "D01+D02")
_MEASURES = {
    "auroc": "AUROC",
    "average_precision": "average precision",
    "calibration_error": "calibration error",
    "risk_area": "risk-coverage area",
}


def confusion(facts: Facts) -> list[Record]:
    """Confusion matrices, diagnoses first."""
    matrices = [row for row in of_analysis(facts, "confusion") if "arm" in row]
    matrices.sort(key=lambda row: row["subtask"] not in _DIAGNOSES)
    return [_matrix(facts, row) for row in matrices]


def _matrix(facts: Facts, row: dict[str, Any]) -> Record:
    subtask = row["subtask"]
    words = {side: answer_words(facts, subtask, row[side]) for side in ("gold", "predicted")}
    return {**row, **words, "subtask": subtask_words(facts, subtask)}


def collapse_indices(facts: Facts) -> list[Record]:
    """Indices of every subtask with one right option, diagnoses first."""
    rows = [row | {"flag": "collapsed" if row["collapsed"] else ""} for row in of_analysis(facts, "collapse")]
    rows.sort(key=lambda row: row["subtask"].partition(" ")[0] not in _DIAGNOSES)
    return [row for row in rows if "arm" in row]


def confidence(facts: Facts) -> Iterator[Record]:
    """Separation of right from wrong answers, where the engine gave probabilities."""
    for row in of_arms(facts, None, "subtask:"):
        metric, _, option = row["metric"].partition(".")
        if metric in _MEASURES:
            line = f"{row['subtask']} {option}".strip()
            yield row | {"metric": _MEASURES[metric], "option": option, "line": line}


def calibration(facts: Facts) -> list[Record]:
    """Accuracy by confidence."""
    return _curve(facts, "calibration")


def risk_and_coverage(facts: Facts) -> list[Record]:
    """Error rate among the answers that remain when the least confident ones are dropped."""
    return _curve(facts, "risk and coverage")


def _curve(facts: Facts, analysis: str) -> list[Record]:
    """Points of an analysis in the order of the arms; a tier's points stand before those of its subtasks."""
    rows = [row for row in facts.analysis(analysis) if facts.arm(row["arm_id"])]
    rows.sort(key=lambda row: (facts.place(row["arm_id"]), not row["scope"].startswith("tier:")))
    table_rows = [cells(facts, row) for row in rows]
    return [row | {"on": row.get("subtask", row["scope"])} for row in table_rows]
