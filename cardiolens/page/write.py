"""A page on disk: written beside the tables of its run, whole or not at all."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from cardiolens import tables
from cardiolens.page.embed import CHUNKS
from cardiolens.page.facts import read_facts
from cardiolens.page.render import render
from cardiolens.store import Run


def write_page(run: Run, parts: Sequence[Run]) -> Path:
    """Make the page of a judged run again; `parts` are the runs that it joins, or itself alone."""
    page = render(read_facts(run, parts))
    shutil.rmtree(run.root / CHUNKS, ignore_errors=True)
    for place, script in page.chunks.items():
        tables.write_text(run.root / place, script)
    tables.write_text(run.page, page.index)
    return run.page
