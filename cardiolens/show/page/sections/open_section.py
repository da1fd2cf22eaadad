"""Section on open questions: numbers beside a constant reader, and names in rankings."""

from cardiolens.protocol.prompts.question import LEADING
from cardiolens.protocol.tasks.twins import LESION
from cardiolens.score.statistics import open_scores as scores
from cardiolens.show.page.columns import (
    COUNTS,
    ENDINGS,
    HIGH,
    LOW,
    METHOD,
    arm_cells,
    ends,
    setting,
    subtask_words,
)
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts

_ARM = (Column("line", "model and setting"), Column("subtask", "question"), Column("unit", "unit"))
_NUMBERS = (
    *(*_ARM, Column(scores.ERROR, "mean absolute error", "score"), LOW, HIGH),
    Column(scores.CONSTANT, "of the constant reader", "score"),
    *(Column(scores.GAIN, "below it by", "points"), Column(f"{scores.GAIN}_low", "95 % CI from", "points")),
    *(Column(f"{scores.GAIN}_high", "to", "points"), Column(scores.WITHIN, "within tolerance, %", "score")),
    *(
        Column(f"{scores.WITHIN}_low", "95 % CI from", "score"),
        Column(f"{scores.WITHIN}_high", "to", "score"),
    ),
    *(Column("tolerance", "tolerance"), Column(scores.CONSTANT_WITHIN, "of the best constant, %", "score")),
    *(Column(scores.BIAS, "bias", "points"), Column("bias_low", "95 % CI from", "points")),
    *(Column("bias_high", "to", "points"), Column(scores.LIMITS[0], "limits of agreement from", "points")),
    *(Column(scores.LIMITS[1], "to", "points"), *COUNTS, *ENDINGS, METHOD),
    *(Column("model", "model"), Column("setting", "setting")),
)
_MEASURES = {f"recall_at_{place}": f"true name among the first {place}" for place in scores.PLACES}
_RANKINGS = (
    *(Column("line", "model and setting"), Column("subtask", "question"), Column("measure", "measure")),
    *(Column("value", "value, %", "score"), LOW, HIGH, *COUNTS, *ENDINGS, METHOD, Column("model", "model")),
)
_CHARTS = {  # form: title and note
    "number_errors": (
        "Mean absolute error",
        "Tick: the constant reader, which gives the median of the true numbers. Unread numbers are in no "
        "error.",
    ),
    "agreement": (
        "Limits of agreement",
        "Thin: bias and 1.96 standard deviations to each side (Bland and Altman). Thick: interval of bias.",
    ),
    "recalls": (
        "Recall of rankings",
        "A name counts if it is the true one or a given synonym, letter by letter: a lower bound.",
    ),
}
_UNCHANGED = (*LEADING, LESION)  # controls that ask for numbers as they are
_METRICS = (
    *(scores.ERROR, scores.WITHIN, scores.BIAS, *scores.LIMITS),
    *(scores.CONSTANT, scores.CONSTANT_WITHIN, scores.GAIN),
)


def open_questions(facts: Facts) -> Section:
    """Errors, limits of agreement and recalls, by subtask."""
    name, title = "open", "Numbers and rankings"
    question = "How far are numbers from the truth, and how high does a list rank it?"
    numbers, rankings = _numbers(facts), _rankings(facts)
    figures: list[Chart] = []
    for table, names in ((numbers, ("number_errors", "agreement")), (rankings, ("recalls",))):
        for form in names if table.rows else ():
            heading, note = _CHARTS[form]
            chart_name = form.replace("_", "-")
            figures.append(Chart(chart_name, heading, form, table, choices=("subtask",), note=note))
    return Section(name, title, question, figures=tuple(figures))


def _numbers(facts: Facts) -> Table:
    records: dict[tuple[object, object], dict[str, object]] = {}
    for row in facts.scores_of(_METRICS, "subtask:"):
        subtask = facts.subtasks.get(str(row["scope"]).removeprefix("subtask:"))
        arm = facts.arm(row["arm_id"])
        if arm is None or arm.control in _UNCHANGED or subtask is None or subtask.quantity is None:
            continue
        metric = str(row["metric"])
        record = records.setdefault((row["arm_id"], row["scope"]), {})
        record[metric] = row["value"]
        record |= {f"{metric}_{end}": value for end, value in ends(row).items()}
        if metric == scores.ERROR:
            cells = arm_cells(arm, facts.simulated)
            quantity = subtask.quantity
            record |= {**row, **ends(row), **cells, "line": cells["arm"], "setting": setting(arm)}
            record |= {"subtask": subtask_words(facts, subtask.id), "unit": quantity.unit}
            record |= {"tolerance": f"{quantity.tolerance:g} {quantity.unit}"}
    return Table.of(
        "numbers", "Numbers", _NUMBERS, [record for record in records.values() if "line" in record]
    )


def _rankings(facts: Facts) -> Table:
    measures = {**_MEASURES, scores.RECIPROCAL: "mean reciprocal rank, times 100"}
    records = []
    for row in facts.scores_of(list(measures), "subtask:"):
        if arm := facts.arm(row["arm_id"]):
            metric, cells = str(row["metric"]), arm_cells(arm, facts.simulated)
            subtask = subtask_words(facts, str(row["scope"]).removeprefix("subtask:"))
            records.append(
                {
                    **row,
                    **ends(row),
                    **cells,
                    "line": cells["arm"],
                    "subtask": subtask,
                    "measure": measures[metric],
                }
            )
    return Table.of("rankings", "Rankings", _RANKINGS, records)
