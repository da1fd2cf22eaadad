"""Section on subtasks: the score of each model on each."""

from cardiolens.show.page.columns import COUNTS, HIGH, LOW, METHOD, VALUE, arm_cells, setting, subtask_words
from cardiolens.show.page.elements import Column, Grid, Section, Table
from cardiolens.show.page.page_data import Facts

_COLUMNS = (
    *(Column("setting", "setting"), Column("model", "model"), Column("subtask", "subtask")),
    *(VALUE, LOW, HIGH, *COUNTS, METHOD),
)


def subtasks(facts: Facts) -> Section:
    """Primary metric of every subtask, one grid per setting."""
    question = "Which findings can a model read, and which can it not?"
    records = [
        {
            **row,
            **arm_cells(arm, facts.simulated),
            "setting": setting(arm),
            "subtask": subtask_words(facts, str(row["scope"]).removeprefix("subtask:")),
        }
        for row in facts.of_arms(["primary"], "subtask:")
        if (arm := facts.arm(row["arm_id"]))
    ]
    if not records:
        return Section("subtasks", "Subtasks", question, absent="No item was judged.")
    table = Table.of("subtask_scores", "Score of every subtask", _COLUMNS, records)
    note = "Accuracy, micro-F1 or entity-F1 in percent. Press a model to sort by it."
    grid = Grid(
        "subtask-grid", "Subtask by model", table, "subtask", "model", "value", ("setting",), note=note
    )
    return Section("subtasks", "Subtasks", question, figures=(grid,))
