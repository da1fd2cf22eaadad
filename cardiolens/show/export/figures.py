"""A paper's figures of a run as SVG and PDF; the page saves the tables behind them."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.score.statistics.factors import is_headline
from cardiolens.show.page.charts import chart_forms
from cardiolens.show.page.columns import arm_cells
from cardiolens.show.page.elements import Record, described
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.sections.page_sections import table_of
from cardiolens.storage.places import Run

VEGA_LITE = "6.4"  # of the packaged ones, so that a newer package draws the same
_WIDTH = 300  # of a plot, in points
_DIAGNOSES = ("D01+D02", "D01")  # the first that there is


@dataclass(frozen=True, slots=True)
class Figure:
    """A form of chart over the records of a table; without records, why it is not drawn."""

    name: str
    records: Sequence[Record]
    form: Mapping[str, Any]
    absent: str = "the run has nothing to compare there"


def write_figures(run: Run, facts: Facts) -> Path:
    """Rewrite `export/figures` of a judged run, say which figures it does not allow, and return the path."""
    folder = run.root / "export" / "figures"
    figures = figures_of(facts)
    pictures = {figure.name: pictures_of(figure) for figure in figures if figure.records}
    disk.remove_tree(folder)
    for name, (svg, pdf) in pictures.items():
        disk.write_text(folder / f"{name}.svg", svg)
        disk.write_bytes(folder / f"{name}.pdf", pdf)
    for figure in figures:
        if not figure.records:
            say(f"{figure.name}: not drawn: {figure.absent}")
    return folder


def figures_of(facts: Facts) -> list[Figure]:
    """Landscape by tier, confusion at diagnosis, full against public cohort, forest of pooled effects."""
    scores = [row for row in _records(facts, "headlines", "value") if row["measure"] == "score"]
    parts = _records(facts, "cohort_differences", "difference")
    pooled = _records(facts, "questions", "difference")
    return [
        Figure("landscape", scores, chart_forms()["by_model"]),
        _confusion(facts),
        Figure("cohorts", [row | {"of": f"full − {row['part']}"} for row in parts], _facetted("of", "scope")),
        Figure("forest", pooled, _facetted("comparison", "scope")),
    ]


def _confusion(facts: Facts) -> Figure:
    """Matrices of the headline's arms, each cell with its share of the row."""
    arms = {arm_cells(facts, arm)["arm"] for arm in facts.arms if is_headline(arm)}
    every = [record for record in _records(facts, "confusion", "n") if record["arm"] in arms]
    subtasks = [record["subtask"] for record in every]
    chosen = next((name for part in _DIAGNOSES for name in subtasks if name.split()[0] == part), "")
    rows = [record for record in every if record["subtask"] == chosen]
    totals: Counter[tuple[str, str]] = Counter()
    for record in rows:
        totals[record["arm"], record["gold"]] += record["n"]
    shares = [
        record | {"share": 100 * record["n"] / totals[record["arm"], record["gold"]]} for record in rows
    ]
    absent = "no arm of a headline (slice budget 16, the standard prompt) was asked for a diagnosis"
    return Figure("confusion", shares, chart_forms()["confusion"], absent)


def _facetted(row: str, column: str) -> dict[str, Any]:
    """The form of a forest, once for each value of two columns."""
    facet = {"type": "nominal", "title": None, "sort": None}
    upright = {"labelLimit": 240, "labelAngle": 0, "labelAlign": "left"}
    rows = {**facet, "field": row, "header": upright}
    across = {**facet, "field": column, "header": {"labelLimit": 240}}
    form = {name: part for name, part in chart_forms()["forest"].items() if name != "data"}
    return {"facet": {"row": rows, "column": across}, "spec": {**form, "width": _WIDTH * 2 // 3}}


def _records(facts: Facts, name: str, measure: str) -> list[Record]:
    """The rows of a table in which a measure is defined."""
    return [record for record in table_of(facts, name).records() if record[measure] is not None]


def specification(figure: Figure) -> dict[str, Any]:
    """The Vega-Lite specification of a figure, with its records, their series and the colours of print."""
    theme = described("print_theme.yaml")
    width = {} if "facet" in figure.form else {"width": _WIDTH}
    data = {"data": {"values": list(figure.records)}, "config": theme["config"]}
    text = json.dumps({**width, **figure.form, **data})
    form: dict[str, Any] = json.loads(
        re.sub(r"var\(--([a-z0-9-]+)\)", lambda match: theme["colours"][match[1]], text)
    )
    if series := form.pop("usermeta", {}).get("series"):  # as the page does
        domain = sorted({record[series] for record in figure.records})
        for encoding in (layer["encoding"] for layer in form["layer"]):
            for channel in encoding.keys() & {"color", "shape"}:
                encoding[channel]["scale"] = {"domain": domain}
    return form


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
