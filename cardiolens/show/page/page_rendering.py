"""Rendering of facts as a page; the only module that makes the page's HTML."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import jinja2

from cardiolens.base.phases import phase
from cardiolens.score.statistics.hypothesis_tests import MARGIN
from cardiolens.show.page.cards import cards, cautions
from cardiolens.show.page.charts import chart_forms
from cardiolens.show.page.elements import Card, Estimate, described
from cardiolens.show.page.embed import embed, to_json
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.sections.page_sections import section_of

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
    names = phase("writing the page", "sections", described("sections.yaml"))
    sections = [section for name in names if (section := section_of(facts, name)).tables]
    tables = {table.name: embed(table) for section in sections for table in section.tables}
    context = {
        "facts": facts,
        "cautions": cautions(facts),
        "answers": [(card, strip(card)) for card in cards(facts)],
        "box": WIDTH,
        "margin": MARGIN,
        "sections": sections,
        "tables": tables,
        "charts": to_json(chart_forms()),
        "style": asset("page.css"),
        "libraries": [asset(name) for name in LIBRARIES],
        "scripts": [asset(name) for name in SCRIPTS],
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
class Strip:
    """A drawing: estimates from top to bottom, over a scale with words at its ends and in the middle."""

    rows: tuple[Estimate, ...]
    low: float
    high: float
    words: tuple[str, str, str]
    has_band: bool = False  # of equivalence
    n_smaller: int = 0  # estimates that are not drawn

    def x(self, value: float) -> float:
        """The place of a value within the box."""
        return round(WIDTH * (value - self.low) / (self.high - self.low), 2)


def strip(answer: Card) -> Strip | None:
    """Lay out the drawing of an answer; None where no estimate is defined."""
    estimates = answer.estimates
    if not estimates:
        return None
    if not answer.differences:
        return Strip(estimates, 0.0, 100.0, ("0", "50", "100 %"))
    step = _STEPS[answer.unit]
    places = sorted(range(len(estimates)), key=lambda at: -abs(estimates[at].value))[:_MOST_ROWS]
    rows = tuple(estimates[at] for at in sorted(places))
    ends = (abs(end) for row in rows for end in (row.low, row.high, *row.models))
    reach = math.ceil(max(step, *ends) / step) * step
    words = (f"−{reach:g}", "0", f"+{reach:g} {answer.unit}")
    return Strip(rows, -reach, reach, words, answer.has_band, len(estimates) - len(rows))
