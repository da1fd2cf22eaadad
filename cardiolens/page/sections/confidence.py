"""Option probabilities: do they separate, and are they calibrated?"""

from cardiolens.page.columns import ARM, COUNTS, HIGH, LOW, METHOD, VALUE, arm_cells
from cardiolens.page.facts import Facts, Row
from cardiolens.page.view import Chart, Column, Section, Table
from cardiolens.page.words import subtask_words

_SEPARATION = {"auroc": "AUROC", "average_precision": "average precision"}
_CALIBRATION = {"calibration_error": "calibration error", "risk_area": "risk-coverage area"}
_WHAT = (Column("subtask", "subtask"), Column("option", "option"), Column("metric", "measure"))


def confidence(facts: Facts) -> Section:
    """AUROC and calibration by subtask, where the engine gave probabilities."""
    question = "When a model is sure, is it right?"
    rows = [
        row
        for row in facts.of_arms(_metrics(facts), "subtask:")
        if str(row["metric"]).partition(".")[0] in _SEPARATION | _CALIBRATION
    ]
    if not rows:
        absent = "No engine gave option probabilities in this run (answer_format=choice asks for them)."
        return Section("confidence", "Confidence", question, absent=absent)
    table = _table(facts, rows)
    separation = Chart(
        "auroc-chart",
        "AUROC",
        "auroc",
        table,
        where={"metric": "AUROC"},
        choices=("arm",),
        note="50 %: probabilities do not separate. One line a subtask, or an option of several.",
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
    return Section("confidence", "Confidence", question, figures=(separation, calibration))


def _metrics(facts: Facts) -> list[str]:
    names = facts.scores["metric"].unique().to_pylist()
    return [name for name in names if name.partition(".")[0] in _SEPARATION | _CALIBRATION]


def _table(facts: Facts, rows: list[Row]) -> Table:
    records = []
    for row in rows:
        metric, _, option = str(row["metric"]).partition(".")
        arm = facts.arm(row["arm_id"])
        if arm is None:
            continue
        cells = arm_cells(arm, facts.simulated)
        subtask = subtask_words(facts, str(row["scope"]).removeprefix("subtask:"))
        named = {"metric": (_SEPARATION | _CALIBRATION)[metric], "option": option, "subtask": subtask}
        named |= {"line": f"{subtask} {option}".strip()}
        records.append({**row, **cells, **named})
    columns = (
        Column("arm", "arm"),
        *ARM[:1],
        Column("line", "item"),
        *_WHAT,
        VALUE,
        LOW,
        HIGH,
        *COUNTS,
        METHOD,
    )
    return Table.of("confidence", "Separation and calibration", columns, records)
