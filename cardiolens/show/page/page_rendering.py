"""Rendering of facts as a page; the only module that makes the page's HTML."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import jinja2

from cardiolens.base.phases import phase
from cardiolens.score.statistics.hypothesis_tests import MARGIN
from cardiolens.show.page.cards import cards, cautions
from cardiolens.show.page.charts import chart_forms
from cardiolens.show.page.elements import Card, Estimate, Section
from cardiolens.show.page.embed import embed, figure_json, tables_of, to_json
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.sections.answer_sections import collapse, confidence
from cardiolens.show.page.sections.comparison_sections import dependence, explored, questions
from cardiolens.show.page.sections.run_setup import run_setup
from cardiolens.show.page.sections.score_sections import landscape, subtasks

SECTIONS: tuple[Callable[[Facts], Section], ...] = (
    *(landscape, questions, explored, subtasks),
    *(collapse, confidence, dependence, run_setup),
)
SCRIPTS = ("format.js", "store.js", "table.js", "grid.js", "chart.js", "page.js")
LIBRARIES = ("vega.min.js", "vega-lite.min.js")
WIDTH = 200.0  # of the box of a row
_STEPS = {"points": 5.0, "z": 0.5}  # a drawing reaches a multiple of it on either side of zero
_MOST_ROWS = 12  # of a drawing: the largest estimates


@dataclass(frozen=True, slots=True)
class Page:
    """The files of a page by path relative to the run's folder."""

    index: str
    chunks: Mapping[str, str]


def render(facts: Facts) -> Page:
    """Render the page of a run: one HTML file, and large tables beside it."""
    rendered = [make(facts) for make in phase("writing the page", "sections", SECTIONS)]
    sections = [section for section in rendered if not section.is_empty]
    tables = {name: embed(table) for name, table in tables_of(sections).items()}
    context = {
        "facts": facts,
        "cautions": cautions(facts),
        "answers": [(card, strip(card)) for card in cards(facts)],
        "box": WIDTH,
        "sections": sections,
        "tables": tables,
        "charts": to_json(chart_forms()),
        "style": asset("page.css"),
        "libraries": [asset(name) for name in LIBRARIES],
        "scripts": [asset(name) for name in SCRIPTS],
        "figure_json": figure_json,
        "is_grid": lambda figure: hasattr(figure, "down"),
    }
    index = templates().get_template("page.html").render(context)
    return Page(index, {table.chunk: table.script for table in tables.values() if table.chunk})


@cache
def templates() -> jinja2.Environment:
    """Environment of the packaged templates; escapes every value that a template does not mark as safe."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("cardiolens.show.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def asset(name: str) -> str:
    """Read a packaged style sheet or script."""
    return files("cardiolens.show.page").joinpath("assets", name).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class StripRow:
    """A row of a drawing: a dot and a segment from low to high, with single models below, or words alone."""

    label: str
    tone: str
    mark: tuple[float, float, float] | None = None  # dot, low and high, in units of the box
    models: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Strip:
    """Rows from top to bottom, the labels of the scale, and the band of equivalence if there is one."""

    rows: tuple[StripRow, ...]
    ends: tuple[str, str, str]  # labels at the left end, the middle and the right end
    zero: float
    band: tuple[float, float] | None


def strip(answer: Card) -> Strip | None:
    """Lay out the drawing of an answer; None where no estimate is defined."""
    estimates = [estimate for estimate in answer.estimates if not math.isnan(estimate.value)]
    if not estimates:
        return None
    if not answer.differences:
        ranked = tuple(_row(estimate, 0.0, 100.0) for estimate in estimates)
        return Strip(ranked, ("0", "50", "100 %"), 0.0, None)
    step = _STEPS[answer.unit]
    places = sorted(range(len(estimates)), key=lambda at: -abs(estimates[at].value))[:_MOST_ROWS]
    shown = [estimates[at] for at in sorted(places)]
    ends = (abs(end) for estimate in shown for end in _ends(estimate))
    reach = math.ceil(max(step, *ends) / step) * step
    band = (_x(-MARGIN, -reach, reach), _x(MARGIN, -reach, reach)) if answer.has_band else None
    words = (f"−{reach:g}", "0", f"+{reach:g} {answer.unit}")
    rows = [_row(estimate, -reach, reach) for estimate in shown]
    if more := len(estimates) - len(shown):
        rows.append(StripRow(f"and {more} smaller, in the table below", "open"))
    return Strip(tuple(rows), words, WIDTH / 2, band)


def _row(estimate: Estimate, low: float, high: float) -> StripRow:
    ends = (estimate.value, estimate.value) if math.isnan(estimate.low) else (estimate.low, estimate.high)
    at, left, right = (_x(value, low, high) for value in (estimate.value, *ends))
    models = tuple(_x(value, low, high) for value in estimate.models)
    return StripRow(estimate.label, estimate.tone, (at, left, right), models)


def _ends(estimate: Estimate) -> tuple[float, ...]:
    """The values of an estimate that a drawing must reach to."""
    if math.isnan(estimate.low):
        return (estimate.value, *estimate.models)
    return (estimate.low, estimate.high, *estimate.models)


def _x(value: float, low: float, high: float) -> float:
    return round(WIDTH * (value - low) / (high - low), 2)
