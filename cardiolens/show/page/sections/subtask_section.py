"""Section on subtasks: the score of each model on each."""

from cardiolens.config.dataset import JOIN
from cardiolens.protocol.tasks.data_files import FROM, TO, counterparts
from cardiolens.score.statistics.arm_statistics import FIELD_METRICS, SET_ACCURACY
from cardiolens.show.page.columns import (
    COUNTS,
    HIGH,
    LOW,
    METHOD,
    SCOPE,
    VALUE,
    arm_cells,
    ends,
    scope_words,
    setting,
    subtask_words,
)
from cardiolens.show.page.elements import Column, Grid, Section, Table
from cardiolens.show.page.page_data import Facts

_COLUMNS = (
    *(Column("setting", "setting"), Column("model", "model"), Column("subtask", "subtask")),
    *(VALUE, LOW, HIGH, *COUNTS, METHOD),
)
_FIELD_COLUMNS = (
    *(Column("setting", "setting"), Column("model", "model"), SCOPE),
    *(Column(SET_ACCURACY, "exact set", "score"), LOW, HIGH),
    *(Column("hit", "hit", "score"), Column("set_precision", "precision", "score")),
    *(Column("set_recall", "recall", "score"), Column("set_f1", "F1", "score")),
    *(*COUNTS, METHOD),
)
_SIDES = (
    *(Column("setting", "setting"), Column("model", "model")),
    *(Column("field", f"field of {FROM}"), Column("field_value", "exact set", "score")),
    *(Column("field_n_items", "items", "count"), Column("asks", f"{TO} asks")),
    *(Column("subtask", "in subtask"), Column("subtask_value", "exact set", "score")),
    *(Column("subtask_n_items", "items", "count"), Column("note", "what differs")),
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
        for row in facts.scores_of(["primary"], "subtask:")
        if (arm := facts.arm(row["arm_id"]))
    ]
    if not records:
        return Section("subtasks", "Subtasks", question)
    table = Table.of("subtask_scores", "Score of every subtask", _COLUMNS, records)
    note = "Accuracy, micro-F1 or entity-F1 in percent. Press a model to sort by it."
    grid = Grid(
        "subtask-grid", "Subtask by model", table, "subtask", "model", "value", ("setting",), note=note
    )
    tables = tuple(table for table in (_field_scores(facts), _side_by_side(facts)) if table.rows)
    return Section("subtasks", "Subtasks", question, figures=(grid,), tables=tables, notes=_notes(facts))


def _notes(facts: Facts) -> tuple[str, ...]:
    names = str(facts.manifests[0]["protocol"]).split(JOIN)
    if len(names) < 2:
        return ()
    return (
        f"{' and '.join(names)} were asked of the same studies. Tier 1 and the sequences are means over the "
        "subtasks of both; the rows 'protocol' of the field scores are of one each.",
    )


def _field_scores(facts: Facts) -> Table:
    """Scores by protocol, type and view, as the authors' public program has them."""
    records: dict[tuple[object, object], dict[str, object]] = {}
    for scope in ("protocol:", "type:", "view:"):
        for row in facts.scores_of(FIELD_METRICS, scope):
            if arm := facts.arm(row["arm_id"]):
                record = records.setdefault((row["arm_id"], row["scope"]), {})
                record[row["metric"]] = row["value"]
                if row["metric"] == SET_ACCURACY:
                    words = {"setting": setting(arm), "scope": scope_words(row["scope"])}
                    record |= {**row, **ends(row), **arm_cells(arm, facts.simulated), **words}
    title = "Field scores: the exact set, and means over items of fields that take several options"
    return Table.of("field_scores", title, _FIELD_COLUMNS, list(records.values()))


def _side_by_side(facts: Facts) -> Table:
    """Fields of one protocol beside the subtasks of the other that ask after the same."""
    accuracy = {
        (row["arm_id"], str(row["scope"]).removeprefix("subtask:")): row
        for row in facts.scores_of([SET_ACCURACY], "subtask:")
    }
    records = [
        {
            **arm_cells(arm, facts.simulated),
            "setting": setting(arm),
            "field": subtask_words(facts, name),
            "asks": pair.asks,
            "subtask": subtask_words(facts, str(pair.subtask)),
            "note": pair.note,
            **{f"field_{key}": row[key] for key in ("value", "n_items")},
            **{f"subtask_{key}": other[key] for key in ("value", "n_items")},
        }
        for name, pair in counterparts().items()
        for arm in facts.arms
        if (row := accuracy.get((arm.arm_id, name)))
        and (other := accuracy.get((arm.arm_id, str(pair.subtask))))
    ]
    title = f"The same findings asked by {FROM} and by {TO}: answers with the exact set, in percent"
    return Table.of("side_by_side", title, _SIDES, records)
