"""Rendering of facts as a page; the only module that makes the page's HTML."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import jinja2

from cardiolens.base.phases import phase
from cardiolens.show.page.cards import cards, cautions
from cardiolens.show.page.charts import chart_forms
from cardiolens.show.page.elements import Section
from cardiolens.show.page.embed import embed, figure_json, tables_of, to_json
from cardiolens.show.page.interval_drawings import WIDTH, strip
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
