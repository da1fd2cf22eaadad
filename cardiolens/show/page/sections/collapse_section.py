"""Section on category collapse: confusion matrices, indices, and the subtasks on which a model collapsed."""

from collections.abc import Sequence

from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.show.page.columns import ARM, answer_words, arm_cells, subtask_words
from cardiolens.show.page.elements import Chart, Column, Grid, Section, Table
from cardiolens.show.page.page_data import Facts

_INDICES = (
    Column("collapse_index", "collapse index", "score"),
    Column("modal_share", "modal share", "score"),
    Column("modal_excess", "modal excess", "score"),
    *(Column("excess_low", "95 % CI from", "score"), Column("excess_high", "to", "score")),
    Column("absorption", "absorption", "score"),
    Column("entropy", "entropy", "score"),
    Column("entropy_deficit", "entropy deficit", "score"),
    Column("shift", "shift", "score"),
    Column("unparsed", "not readable", "score"),
)
_ARM = Column("arm", "arm")
_DIAGNOSES = ("D01", "D02", "D01+D02")
_MATRIX = (
    _ARM,
    Column("subtask", "subtask"),
    Column("gold", "true"),
    Column("predicted", "called"),
    Column("n", "items", "count"),
)


def collapse(facts: Facts) -> Section:
    """Confusion matrices, diagnoses first, then indices of every subtask with one right option."""
    indices, matrices = _indices(facts), facts.analysis("confusion")
    question = "Does a model default to a few categories, whatever the image shows?"
    if not indices.rows:
        return Section("collapse", "Confusion and collapse", question)
    diagnoses = _matrices(facts, "confusion", "Diagnosis: true against called", matrices, diagnosis=True)
    other_subtasks = _matrices(facts, "confusion_findings", "Findings: true against called", matrices)
    note = "Shares of a row: what was called where the row is true. Numbers are items."
    grids = [
        Grid(table.name, table.title, table, "gold", "predicted", "n", ("subtask", "arm"), True, note)
        for table in (diagnoses, other_subtasks)
        if table.rows
    ]
    chart = Chart(
        "collapse-index",
        "Collapse index",
        "index",
        indices,
        choices=("subtask", "model"),
        note="A subtask counts as collapsed from an index of 30 %, or where one answer holds 80 % and 10 % "
        "too much, if the 95 % interval of that excess lies above 5 points.",
    )
    return Section("collapse", "Confusion and collapse", question, figures=(*grids[:1], chart, *grids[1:]))


def _indices(facts: Facts) -> Table:
    records = []
    for row in sorted(facts.analysis("collapse"), key=lambda row: facts.place(row["arm_id"])):
        if arm := facts.arm(row["arm_id"]):
            subtask = str(row["scope"]).removeprefix("subtask:")
            words = {
                "subtask": subtask_words(facts, subtask),
                "flag": "collapsed" if row["collapsed"] else "",
            }
            records.append({**row, **arm_cells(arm, facts.simulated), **words})
    columns = (
        _ARM,
        *ARM,
        Column("subtask", "subtask"),
        *_INDICES,
        Column("flag", "flag"),
        Column("n_items", "items", "count"),
    )
    return Table.of("collapse_indices", "Collapse indices", columns, _diagnoses_first(records))


def _diagnoses_first(records: Sequence[AnalysisRow]) -> list[AnalysisRow]:
    return sorted(records, key=lambda record: str(record["subtask"]).partition(" ")[0] not in _DIAGNOSES)


def _matrices(
    facts: Facts, name: str, title: str, rows: Sequence[AnalysisRow], *, diagnosis: bool = False
) -> Table:
    records = []
    for row in sorted(rows, key=lambda row: facts.place(row["arm_id"])):
        arm = facts.arm(row["arm_id"])
        if arm and (row["subtask"] in _DIAGNOSES) == diagnosis:
            words = {side: answer_words(facts, row["subtask"], row[side]) for side in ("gold", "predicted")}
            words["subtask"] = subtask_words(facts, row["subtask"])
            records.append({**row, **arm_cells(arm, facts.simulated), **words})
    return Table.of(name, title, _MATRIX, records)
