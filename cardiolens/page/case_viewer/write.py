"""Writing of the case viewer: a page with one script per study, loaded when the study is opened."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from cardiolens import tables
from cardiolens.page.case_viewer.cases import Sources, index_of, read_sources, study_cases
from cardiolens.page.case_viewer.pictures import write_pictures
from cardiolens.page.case_viewer.withheld import without_reports
from cardiolens.page.embed import to_json
from cardiolens.page.facts import Facts
from cardiolens.page.render import asset, templates
from cardiolens.record.places import Run

_SCRIPTS = ("format.js", "stage.js", "case.js", "viewer.js")


def write_viewer(run: Run, parts: Sequence[Run], facts: Facts, *, include_images: bool) -> Path:
    """Write the viewer of a run anew, and return its path.

    Frames and report texts are written only with `include_images`, because the folder may be passed on.
    """
    folder = run.viewer
    sources = read_sources(run, parts, facts)
    sources = sources if include_images else without_reports(sources)
    shutil.rmtree(folder, ignore_errors=True)
    for number, cases in study_cases(sources):
        tables.write_text(folder / "cases" / f"{number}.js", script_of(number, cases))
    if include_images:
        write_pictures(folder, facts.specs[0].store, sources)
    tables.write_text(folder / "index.html", render_viewer(sources, facts, images=include_images))
    return folder / "index.html"


def script_of(number: int, cases: Mapping[str, object]) -> str:
    """Script that hands the cases of a study to the viewer."""
    return f"cardiolens.receive({number},{to_json(cases)});\n"


def render_viewer(sources: Sources, facts: Facts, *, images: bool) -> str:
    """Render the viewer's page; `images` says whether frames are available where it is opened."""
    context = {
        "name": facts.name,
        "run": to_json({"name": facts.name, "images": images, "simulated": sorted(facts.simulated)}),
        "index": to_json(index_of(sources, facts)),
        "style": asset("page.css") + asset("viewer.css"),
        "scripts": [asset(name) for name in _SCRIPTS],
    }
    return templates().get_template("viewer.html").render(context)
