"""A paper's figures of a run: SVG, PDF, and the table behind each as CSV."""

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.score.statistics.headlines import is_headline
from cardiolens.show.export.table_export import as_text
from cardiolens.show.page.columns import arm_cells
from cardiolens.show.page.elements import Cell, Section, Table
from cardiolens.show.page.embed import tables_of
from cardiolens.show.page.page_data import Facts, read_facts
from cardiolens.show.page.page_rendering import chart_forms
from cardiolens.show.page.sections.cohort_section import dependence
from cardiolens.show.page.sections.collapse_section import collapse
from cardiolens.show.page.sections.landscape_section import landscape
from cardiolens.show.page.sections.questions_section import questions
from cardiolens.storage.places import Run

VEGA_LITE = "6.4"  # of the packaged ones, so that a newer package draws the same
_WIDTH = 300  # of a plot, in points
_DIAGNOSES = ("D01+D02", "D01")  # the first that there is
# Each of these is as light as no other, so that they differ in print without colour; shapes differ besides.
COLOURS: Mapping[str, str] = {
    "c0": "#161616",
    "c1": "#0072b2",
    "c2": "#e69f00",
    "c-shown": "#161616",
    "c-equivalent": "#0072b2",
    "c-open": "#a6a6a6",
    "ink": "#161616",
    "ink-soft": "#4d4d4d",
    "line": "#d9d9d9",
    "band": "#ededed",
    "accent": "#161616",
}
# It comes with the package that draws. In one weight alone: the fonts of a PDF have places in any order.
_FONT = "Liberation Sans"
_CONFIG: Mapping[str, Any] = {
    "background": "#ffffff",
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "titleFontWeight": 400,
        "gridColor": "var(--line)",
        "domainColor": "var(--ink-soft)",
        "tickColor": "var(--ink-soft)",
    },
    "axisX": {"tickCount": 6},
    "legend": {"labelLimit": 240, "titleFontWeight": 400},
    "header": {"titleFontWeight": 400},
    "range": {
        "category": ["var(--c0)", "var(--c1)", "var(--c2)"],
        "symbol": ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross"],
    },
    "style": {
        "band": {"fill": "var(--band)", "opacity": 1},
        "zero": {"stroke": "var(--ink-soft)", "strokeWidth": 1},
        "interval": {"strokeWidth": 1.5},
        "interval_90": {"strokeWidth": 4, "strokeOpacity": 0.55},
    },
}
_ABSENT = "the run has nothing to compare there"

Record = dict[str, Cell]


@dataclass(frozen=True, slots=True)
class Figure:
    """A Vega-Lite form over the records of a table; without records, why it is not drawn."""

    name: str
    table: Table
    records: Sequence[Record]
    form: Mapping[str, Any]
    absent: str = ""


def write_figures(run: Run, parts: Sequence[Run]) -> Path:
    """Rewrite `export/figures` of a judged run, say which figures it does not allow, and return the path.

    `parts` are the runs that it joins, or itself alone.
    """
    folder = run.root / "export" / "figures"
    draw_figures(read_facts(run, parts), folder)
    return folder


def draw_figures(facts: Facts, folder: Path) -> None:
    """Replace a folder by the figures of a run, and say which ones the run does not allow."""
    allowed = [figure for figure in figures_of(facts) if _is_drawn(figure)]
    pictures = {figure.name: pictures_of(figure) for figure in allowed}
    disk.remove_tree(folder)
    for figure in allowed:
        svg, pdf = pictures[figure.name]
        disk.write_text(folder / f"{figure.name}.svg", svg)
        disk.write_bytes(folder / f"{figure.name}.pdf", pdf)
        disk.write_text(folder / f"{figure.name}.csv", csv_of(figure.table))


def _is_drawn(figure: Figure) -> bool:
    if not figure.records:
        say(f"{figure.name}: not drawn: {figure.absent}")
    return bool(figure.records)


def figures_of(facts: Facts) -> list[Figure]:
    """Landscape by tier, confusion at diagnosis, full against public cohort, forest of pooled effects."""
    return [_landscape(facts), _confusion(facts), _cohorts(facts), _forest(facts)]


def _landscape(facts: Facts) -> Figure:
    section = landscape(facts)
    table = _table(section, "headlines")
    rows = [record for record in _defined(table) if record["measure"] == "score"]
    return Figure("landscape", table, rows, _page_form("by_model"), _ABSENT)


def _confusion(facts: Facts) -> Figure:
    """Matrices of the headline's arms, each cell with its share of the row."""
    section = collapse(facts)
    table = _table(section, "confusion")
    arms = {str(arm_cells(arm, facts.simulated)["arm"]) for arm in facts.arms if is_headline(arm)}
    every = [record for record in _records(table) if record["arm"] in arms]
    subtasks = [str(record["subtask"]) for record in every]
    chosen = next((name for part in _DIAGNOSES for name in subtasks if name.split()[0] == part), "")
    rows = [record for record in every if record["subtask"] == chosen]
    totals: Counter[tuple[Cell, Cell]] = Counter()
    for record in rows:
        totals[record["arm"], record["gold"]] += int(record["n"] or 0)
    shares = [
        record | {"share": 100 * int(record["n"] or 0) / totals[record["arm"], record["gold"]]}
        for record in rows
    ]
    absent = "no arm of a headline (slice budget 16, the standard prompt) was asked for a diagnosis"
    return Figure("confusion", table, shares, _own_form("confusion"), absent)


def _cohorts(facts: Facts) -> Figure:
    section = dependence(facts)
    table = _table(section, "cohort_differences")
    rows = [record | {"of": f"full − {record['part']}"} for record in _defined(table)]
    return Figure("cohorts", table, rows, _facetted("of", "scope"), _ABSENT)


def _forest(facts: Facts) -> Figure:
    section = questions(facts)
    table = _table(section, "questions")
    return Figure("forest", table, _defined(table), _facetted("comparison", "scope"), _ABSENT)


def _facetted(row: str, column: str) -> dict[str, Any]:
    """The form of a forest, once for each value of two columns."""
    facet: dict[str, Any] = {"type": "nominal", "title": None, "sort": None}
    upright = {"labelLimit": 240, "labelAngle": 0, "labelAlign": "left"}
    return {
        "facet": {
            "row": {**facet, "field": row, "header": upright},
            "column": {**facet, "field": column, "header": {"labelLimit": 240}},
        },
        "spec": {**_page_form("forest"), "width": _WIDTH * 2 // 3},
    }


def _page_form(name: str) -> dict[str, Any]:
    form = chart_forms()[name]
    assert isinstance(form, dict), "a specification is a JSON object"
    return deepcopy(form)


def _own_form(name: str) -> dict[str, Any]:
    text = files("cardiolens.show.export").joinpath("figure_forms", f"{name}.json").read_text("utf-8")
    form: dict[str, Any] = json.loads(text)
    return form


def _table(section: Section, name: str) -> Table:
    return tables_of([section]).get(name) or Table(name, name, (), [])


def _records(table: Table) -> list[Record]:
    names = [column.name for column in table.columns]
    return [dict(zip(names, map(_finite, row), strict=True)) for row in table.rows]


def _value(record: Record) -> str:
    return "difference" if "difference" in record else "value"


def _defined(table: Table) -> list[Record]:
    return [record for record in _records(table) if record[_value(record)] is not None]


def _finite(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def specification(figure: Figure) -> dict[str, Any]:
    """The Vega-Lite specification of a figure, with its records and the colours of print."""
    form = {"width": _WIDTH, **figure.form} if "facet" not in figure.form else dict(figure.form)
    form |= {"data": {"values": list(figure.records)}, "config": _CONFIG}
    text = re.sub(r"var\(--([a-z0-9-]+)\)", lambda match: COLOURS[match[1]], json.dumps(form))
    coloured: dict[str, Any] = json.loads(text)
    return coloured


def pictures_of(figure: Figure) -> tuple[str, bytes]:
    """Draw a figure as SVG and PDF; InputError if the package that draws is not installed."""
    try:
        import vl_convert
    except ImportError as error:
        raise InputError(
            "figures need the package vl-convert-python; install it: pip install 'cardiolens[figures]'"
        ) from error
    svg = vl_convert.vegalite_to_svg(specification(figure), vl_version=VEGA_LITE)
    return svg, vl_convert.svg_to_pdf(svg)


def csv_of(table: Table) -> str:
    """Write a table as CSV with all digits; undefined cells are empty."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow([column.name for column in table.columns])
    for row in table.rows:
        writer.writerow([as_text(cell) if isinstance(cell, str) else cell for cell in map(_finite, row)])
    return written.getvalue()
