"""Section on option probabilities: separation of right from wrong answers, and calibration."""

from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.show.page.columns import (
    ARM,
    COUNTS,
    HIGH,
    LOW,
    METHOD,
    VALUE,
    arm_cells,
    scope_words,
    subtask_words,
)
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts

_SEPARATION = {"auroc": "AUROC", "average_precision": "average precision"}
_CALIBRATION = {"calibration_error": "calibration error", "risk_area": "risk-coverage area"}
_SUBJECT = (Column("subtask", "subtask"), Column("option", "option"), Column("metric", "measure"))

_ON = (Column("arm", "arm"), Column("on", "on"))
_CALIBRATION_POINTS = (
    *(Column("from", "confidence from", "count"), Column("to", "confidence to", "count")),
    *(Column("confidence", "mean confidence", "score"), Column("accuracy", "accuracy", "score")),
)
_RISK = (Column("coverage", "kept", "count"), Column("risk", "wrong among them", "score"))


def confidence(facts: Facts) -> Section:
    """AUROC and calibration by subtask, where the engine gave probabilities."""
    question = "When a model is sure, is it right?"
    rows = [
        row
        for row in facts.scores_of(None, "subtask:")
        if str(row["metric"]).partition(".")[0] in _SEPARATION | _CALIBRATION
    ]
    if not rows:
        return Section("confidence", "Confidence", question)
    table = _table(facts, rows)
    separation = Chart(
        "auroc-chart",
        "AUROC",
        "auroc",
        table,
        where={"metric": "AUROC"},
        choices=("arm",),
        note="50 %: no better than chance. Rows with an interval, by subtask or option.",
    )
    calibration = Chart(
        "calibration-chart",
        "Expected calibration error",
        "calibration",
        table,
        where={"metric": "calibration error"},
        choices=("arm",),
        note="Mean distance of confidence and accuracy; zero is calibrated.",
    )
    return Section("confidence", "Confidence", question, figures=(separation, calibration, *_curves(facts)))


def _curves(facts: Facts) -> tuple[Chart, ...]:
    """Calibration curves, and the share of wrong answers among the most confident."""
    calibration = Chart(
        "calibration-curve",
        "Calibration curve",
        "calibration_curve",
        _curve(facts, "calibration", _CALIBRATION_POINTS),
        choices=("arm", "on"),
        note="On the dashed line, confidence equals accuracy. Each point is one of ten confidence bins.",
    )
    risk = Chart(
        "risk-curve",
        "Risk and coverage",
        "risk",
        _curve(facts, "risk and coverage", _RISK),
        choices=("arm", "on"),
        note="Error rate among the answers that remain when the least confident ones are dropped.",
    )
    return tuple(chart for chart in (calibration, risk) if chart.table.rows)


def _curve(facts: Facts, analysis: str, columns: tuple[Column, ...]) -> Table:
    """Points of an analysis in the order of the arms; a tier's points stand before those of its subtasks."""
    place = {arm.arm_id: at for at, arm in enumerate(facts.arms)}
    rows = [row for row in facts.analysis(analysis) if row["arm_id"] in place]
    rows.sort(key=lambda row: (place[row["arm_id"]], not row["scope"].startswith("tier:")))
    records = [
        {
            **row,
            **arm_cells(facts.arms[place[row["arm_id"]]], facts.simulated),
            "on": _on(facts, row["scope"]),
        }
        for row in rows
    ]
    name, title = analysis.replace(" ", "_"), analysis.capitalize()
    return Table.of(name, title, (*_ON, *columns, LOW, HIGH, *COUNTS), records)


def _on(facts: Facts, scope: str) -> str:
    kind, _, name = scope.partition(":")
    return subtask_words(facts, name) if kind == "subtask" else scope_words(scope)


def _table(facts: Facts, rows: list[AnalysisRow]) -> Table:
    records = []
    for row in rows:
        metric, _, option = str(row["metric"]).partition(".")
        arm = facts.arm(row["arm_id"])
        if arm is None:
            continue
        cells = arm_cells(arm, facts.simulated)
        subtask = subtask_words(facts, str(row["scope"]).removeprefix("subtask:"))
        words = {"metric": (_SEPARATION | _CALIBRATION)[metric], "option": option, "subtask": subtask}
        words |= {"line": f"{subtask} {option}".strip()}
        records.append({**row, **cells, **words})
    columns = (
        Column("arm", "arm"),
        *ARM[:1],
        Column("line", "item"),
        *_SUBJECT,
        VALUE,
        LOW,
        HIGH,
        *COUNTS,
        Column("n_positive", "positive items", "count"),
        Column("n_rarer_class", "patients of the rarer class", "count"),
        METHOD,
    )
    return Table.of("confidence", "Separation and calibration", columns, records)
