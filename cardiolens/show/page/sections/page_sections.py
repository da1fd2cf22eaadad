"""The sections of a page, as `sections.yaml` describes them, with their tables and notes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cardiolens.show.page.columns import of_analysis
from cardiolens.show.page.elements import Chart, Record, Section, Table, described
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.sections import answer_tables, comparison_tables, run_tables, score_tables

RECORDS: Mapping[str, Callable[[Facts], Iterable[Record]]] = {  # each function has the name of its table
    name: getattr(module, name)
    for module in (score_tables, comparison_tables, answer_tables, run_tables)
    for name in described("tables.yaml")
    if hasattr(module, name)
}
NOTES: Mapping[str, Callable[[Facts], Iterable[str]]] = {  # of sections, and further ones of figures
    "landscape": score_tables.on_landscape,
    "questions-chart": comparison_tables.on_questions,
    "subtasks": score_tables.on_subtasks,
    "dependence": comparison_tables.on_dependence,
    "asked": run_tables.on_run,
}


def section_of(facts: Facts, name: str) -> Section:
    """Make a section of a run.

    A table stands below its last figure; that of a figure with nothing to draw stands with the others.
    """
    section = described("sections.yaml")[name]
    figures = section["figures"]
    tables = {table: table_of(facts, table) for table in dict.fromkeys(figure["table"] for figure in figures)}
    charts = [_chart(facts, figure, tables[figure["table"]]) for figure in figures]
    drawn = tuple(chart for chart in charts if chart.has_rows)
    others = [table for table in tables.values() if all(table is not chart.table for chart in drawn)]
    others += [table_of(facts, table) for table in section.get("tables", [])]
    return Section(
        name,
        section["title"],
        section["question"],
        figures=drawn,
        tables=tuple(table for table in others if table.rows),
        notes=tuple(_notes(facts, name)),
        is_folded=section.get("is_folded", False),
    )


def _chart(facts: Facts, figure: Mapping[str, Any], table: Table) -> Chart:
    note = " ".join(filter(None, [figure.get("note"), *_notes(facts, figure["name"])]))
    choices = tuple(figure.get("choices", ()))
    return Chart(**{"title": table.title, **figure, "table": table, "choices": choices, "note": note})


def _notes(facts: Facts, name: str) -> Iterable[str]:
    return NOTES[name](facts) if name in NOTES else ()


def table_of(facts: Facts, name: str) -> Table:
    """Make a table of a run; one without a function of its own is the analysis of that name."""
    records = RECORDS[name](facts) if name in RECORDS else of_analysis(facts, name.replace("_", " "))
    return Table.of(name, records)
