"""The sections of a page, as `sections.yaml` describes them, with their tables and notes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cardiolens.show.page.columns import of_analysis
from cardiolens.show.page.elements import Chart, Record, Section, Table, described
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.sections import answer_tables, comparison_tables, run_tables, score_tables

RECORDS: Mapping[str, Callable[[Facts], Iterable[Record]]] = {
    records.__name__: records
    for records in (
        *(score_tables.headlines, score_tables.arm_scores, score_tables.subtask_scores),
        *(score_tables.field_scores, score_tables.numbers, score_tables.rankings),
        *(comparison_tables.questions, comparison_tables.slice_scores, comparison_tables.pairs),
        *(comparison_tables.control_measures, comparison_tables.choices),
        *(comparison_tables.cohort_differences, comparison_tables.spread),
        *(answer_tables.confusion, answer_tables.collapse_indices, answer_tables.confidence),
        *(answer_tables.calibration, answer_tables.risk_and_coverage),
        *(run_tables.endings_by_arm, run_tables.models, run_tables.ceiling, run_tables.readings_by_model),
        *(run_tables.readings_of_peers, run_tables.audits, run_tables.arms, run_tables.fixed),
        run_tables.work,
    )
}
NOTES: Mapping[str, Callable[[Facts], Iterable[str]]] = {  # of sections, and further ones of figures
    "landscape": score_tables.on_landscape,
    "questions-chart": comparison_tables.on_questions,
    "subtasks": score_tables.on_subtasks,
    "dependence": comparison_tables.on_dependence,
    "asked": run_tables.on_run,
}


def section_of(facts: Facts, name: str) -> Section:
    """Make a section of a run."""
    section = described("sections.yaml")[name]
    figures = section.get("figures", [])
    names = dict.fromkeys(figure["table"] for figure in figures)
    tables = {table: table_of(facts, table) for table in names}
    return Section(
        name,
        section["title"],
        section["question"],
        figures=tuple(_chart(facts, figure, tables[figure["table"]]) for figure in figures),
        tables=tuple(table_of(facts, table) for table in section.get("tables", [])),
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
