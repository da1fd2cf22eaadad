"""Section on slice protocols and budgets: scores as lines, paired differences, equivalence."""

from dataclasses import asdict

from cardiolens.show.page.columns import ARM, COUNTS, HIGH, LOW, METHOD, SCOPE, VALUE, arm_cells, row_cells
from cardiolens.show.page.difference_table import difference_table, differences
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts

_LINES = (
    *(Column("model", "model"), Column("prompt", "prompt"), Column("selector", "selection")),
    *(Column("budget", "K"), SCOPE, VALUE, LOW, HIGH, *COUNTS, METHOD),
)
_CHOICES = (
    *ARM,
    Column("asked", "questions", "count"),
    Column("requests", "requests for frames, mean", "number"),
    Column("frames", "frames shown, mean", "number"),
    Column("refused", "names refused, mean", "number"),
    Column("unanswered", "without a legal request or not yet answered", "count"),
)
_BAND = "Grey band: ±2 points, within which arms count as equivalent (90 % interval, the thick line)."


def slices(facts: Facts) -> Section:
    """One line per protocol over budgets, and differences between protocols and between budgets."""
    protocols, budgets = differences(facts, "selector"), differences(facts, "budget")
    figures = [
        Chart(
            "slice-lines",
            "Score by budget and protocol",
            "lines",
            _lines(facts),
            choices=("model", "prompt"),
            note="Bars are 95 % intervals over patients; arms share patients, so read differences below.",
        )
    ]
    forests = (
        ("protocol-differences", "Differences between slice protocols", protocols),
        ("budget-differences", "Differences between budgets", budgets),
    )
    for name, title, comparisons in forests:
        if comparisons:
            table = difference_table(name, title, comparisons, facts)
            choices = ("model", "scope", "prompt", "control")
            figures.append(Chart(f"{name}-chart", title, "forest", table, choices=choices, note=_BAND))
    return Section(
        "slices",
        "Slice protocols and budgets",
        "Does it matter which slices a model sees, and how many?",
        findings=(*facts.analysis("slice protocols").findings, *facts.analysis("slice budgets").findings),
        figures=tuple(figures),
        tables=_choices(facts),
        notes=() if protocols and budgets else (_absence_note(bool(protocols), bool(budgets)),),
    )


def _choices(facts: Facts) -> tuple[Table, ...]:
    """Frame requests of readers that choose their frames; no table for a run without any."""
    records = [
        asdict(counts) | arm_cells(arm, facts.simulated)
        for counts in facts.choices
        if (arm := facts.arm(counts.arm_id))
    ]
    title = "Readers that chose their frames"
    return (Table.of("choices", title, _CHOICES, records),) if records else ()


def _absence_note(protocols: bool, budgets: bool) -> str:
    absent = [
        *([] if protocols else ["only one slice protocol"]),
        *([] if budgets else ["only one budget"]),
    ]
    return f"This run has judged answers of {' and '.join(absent)}: no such difference can be taken."


def _lines(facts: Facts) -> Table:
    records = [
        row_cells(row) | arm_cells(arm, facts.simulated)
        for row in facts.of_arms(["primary"], "tier:")
        if (arm := facts.arm(row["arm_id"])) and arm.control == "none"
    ]
    return Table.of("slice_scores", "Score by budget and protocol", _LINES, records)
