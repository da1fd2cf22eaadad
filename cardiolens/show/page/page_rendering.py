"""Rendering of facts as a page; the only module that makes the page's HTML."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import jinja2

from cardiolens.base.phases import phase
from cardiolens.score.claims import hospitals
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.statistics.enough_data import FEWEST_FOR_CLAIM, FEWEST_FOR_INTERVAL
from cardiolens.show.page.elements import Column, Section, Table
from cardiolens.show.page.embed import embed, figure_json, tables_of, to_json
from cardiolens.show.page.first_screen import first_screen
from cardiolens.show.page.interval_drawings import WIDTH, strip
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.sections.cohorts import cohorts
from cardiolens.show.page.sections.collapse_section import collapse
from cardiolens.show.page.sections.confidence_section import confidence
from cardiolens.show.page.sections.controls import controls
from cardiolens.show.page.sections.cost import cost
from cardiolens.show.page.sections.landscape_section import landscape
from cardiolens.show.page.sections.open_section import open_questions
from cardiolens.show.page.sections.prompting import prompting
from cardiolens.show.page.sections.questions_section import questions
from cardiolens.show.page.sections.reliability import reliability
from cardiolens.show.page.sections.run_setup import run_setup
from cardiolens.show.page.sections.slices import slices
from cardiolens.show.page.sections.source_section import sources
from cardiolens.show.page.sections.subtask_section import subtasks
from cardiolens.show.page.too_few_items import too_few_items

SECTIONS: tuple[Callable[[Facts], Section], ...] = (
    *(
        run_setup,
        questions,
        landscape,
        slices,
        prompting,
        collapse,
        subtasks,
        open_questions,
        controls,
        cohorts,
        sources,
        confidence,
    ),
    *(reliability, cost),
)
SCRIPTS = ("format.js", "store.js", "table.js", "grid.js", "chart.js", "page.js")
LIBRARIES = ("vega.min.js", "vega-lite.min.js")
_SHOWN_SENTENCES = 5  # of a section; a table holds all of them if there are more


@dataclass(frozen=True, slots=True)
class Page:
    """The files of a page by path relative to the run's folder."""

    index: str
    chunks: Mapping[str, str]


def render(facts: Facts) -> Page:
    """Render the page of a run: one HTML file, and large tables beside it."""
    made = [_with_sentences(make(facts)) for make in phase("writing the page", "sections", SECTIONS)]
    sections = [section for section in made if not section.is_empty]
    tables = {name: embed(table) for name, table in tables_of(sections).items()}
    context = {
        "facts": facts,
        "too_few": too_few_items(facts),
        "hospitals": [row["sentence"] for row in facts.analysis(hospitals.NAME).rows],
        "few": facts.n_patients < FEWEST_FOR_CLAIM,
        "fewest": FEWEST_FOR_CLAIM,
        "fewest_for_interval": FEWEST_FOR_INTERVAL,
        "answers": [(answer, strip(answer)) for answer in first_screen(facts)],
        "box": WIDTH,
        "sections": sections,
        "empty_sections": [section for section in made if section.is_empty],
        "first_findings": {section.name: _first_findings(section.findings) for section in sections},
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


def _first_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """First few findings, those on models first, and then those with a clear verdict."""
    ordered = sorted(findings, key=lambda finding: (finding.simulated, finding.side is None))
    return tuple(ordered[:_SHOWN_SENTENCES])


def _with_sentences(section: Section) -> Section:
    """Section with a table of all its sentences added, if there are more than the first few."""
    if len(section.findings) <= _SHOWN_SENTENCES:
        return section
    columns = (Column("verdict", "verdict"), Column("sentence", "sentence"))
    rows = [(finding.verdict, finding.sentence) for finding in section.findings]
    table = Table(f"sentences_{section.name}", f"All sentences ({len(rows)})", columns, rows)
    return replace(section, tables=(table, *section.tables))


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


@cache
def chart_forms() -> dict[str, object]:
    """Vega-Lite specifications by form of chart."""
    folder = files("cardiolens.show.page").joinpath("charts")
    return {
        entry.name.removesuffix(".json"): json.loads(entry.read_text(encoding="utf-8"))
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
    }
