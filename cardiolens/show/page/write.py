"""Writing of a page next to the tables of its run; each file is written atomically."""

from collections.abc import Sequence
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.phases import begin
from cardiolens.show.page.embed import CHUNKS
from cardiolens.show.page.page_data import Facts, read_facts
from cardiolens.storage.places import Run


def write_page(
    run: Run, parts: Sequence[Run], *, include_images: bool = False, facts: Facts | None = None
) -> Path:
    """Rewrite the page and the case viewer of a judged run, and return the path of the page.

    `parts` are the runs that it merges, or itself alone. Frames are written only with `include_images`.
    `facts` are those of the run, if they were read already.
    """
    # Charts and a server are slow to import, and most verbs write no page.
    from cardiolens.show.page.case_viewer.viewer_server import write_viewer
    from cardiolens.show.page.page_rendering import render

    if facts is None:
        begin("reading scores for the page")
        facts = read_facts(run, parts)
    page = render(facts)
    disk.remove_tree(run.root / CHUNKS)
    for place, script in page.chunks.items():
        disk.write_text(run.root / place, script)
    begin("writing the case viewer")
    write_viewer(run, parts, facts, include_images=include_images)
    disk.write_text(run.page, page.index)
    return run.page
