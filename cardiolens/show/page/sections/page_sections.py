"""The sections of a page, as `sections.yaml` describes them, with their tables and notes."""

from collections.abc import Callable, Iterable, Mapping

from cardiolens.show.page.columns import of_analysis
from cardiolens.show.page.elements import Record, Section, Table, described
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.sections import result_tables, run_tables

RECORDS: Mapping[str, Callable[[Facts], Iterable[Record]]] = {  # each function has the name of its table
    name: getattr(module, name)
    for module in (result_tables, run_tables)
    for name in described("tables.yaml")
    if hasattr(module, name)
}
NOTES: Mapping[str, Callable[[Facts], Iterable[str]]] = {  # of sections
    "landscape": result_tables.on_landscape,
    "subtasks": result_tables.on_subtasks,
    "dependence": result_tables.on_dependence,
    "asked": run_tables.on_run,
}


def section_of(facts: Facts, name: str) -> Section:
    """Make a section of a run, with the tables that have rows and the figures that have something to draw."""
    section = described("sections.yaml")[name]
    names = [*(figure["table"] for figure in section["figures"]), *section.get("tables", ())]
    tables = {each: table for each in dict.fromkeys(names) if (table := table_of(facts, each)).rows}
    figures = []
    for figure in section["figures"]:
        drawn, where = tables.get(figure["table"]), figure.get("where", {})
        if drawn is not None and any(where.items() <= record.items() for record in drawn.records()):
            figures.append({"title": drawn.title, "choices": [], "note": "", **figure})
    return Section(
        name,
        section["title"],
        section["question"],
        tuple(figures),
        tuple(tables.values()),
        tuple(NOTES[name](facts)) if name in NOTES else (),
        is_folded=section.get("is_folded", False),
    )


def table_of(facts: Facts, name: str) -> Table:
    """Make a table of a run: of the function of its name, of the scores that it names, or of an analysis."""
    table = described("tables.yaml")[name]
    records: Iterable[Record]
    if name in RECORDS:
        records = RECORDS[name](facts)
    elif "scores" in table:
        records = result_tables.measured(facts, name)
    else:
        rows = of_analysis(facts, table.get("analysis", name.replace("_", " ")))
        records = [row for row in rows if not row["arm_id"]] if table.get("of") == "models" else rows
    for column, words in table.get("words", {}).items():
        records = [record | {column: words[record[column]]} for record in records]
    return Table.of(name, records)
