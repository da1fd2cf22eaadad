"""`python -m cardiolens.view run=outputs/...`: serve the case viewer with frames, on this machine only.

`runs=[outputs/...,outputs/...]` shows several runs as one. Cases are read when they are opened.
"""

import sys
from collections.abc import Sequence

from cardiolens.base.console import say
from cardiolens.commands.command import door
from cardiolens.show.page.case_viewer.cases import index_of
from cardiolens.show.page.case_viewer.item_sources import open_sources
from cardiolens.show.page.case_viewer.viewer_server import Scripts, Viewer, render_viewer, viewer_server
from cardiolens.storage.places import Run, RunWords, read_runs
from cardiolens.workflow.steps.judge_run import joined


def served_of(runs: Sequence[Run]) -> Viewer:
    """Return the viewer of one run, or of several as one; nothing is written to disk."""
    sources = open_sources(joined(runs), runs)
    words = "All answers of the run, read from its tables as you open them."
    return Viewer(
        index=render_viewer(sources.header, index_of(sources), words, images=True, served=True),
        script=Scripts(sources),
        store=sources.header.specs[0].store,
        folder=sources.header.specs[0].dataset.studies,
        studies=sources.studies,
    )


def view(runs: Sequence[Run]) -> int:
    """Serve the case viewer until interrupted."""
    with viewer_server(served_of(runs)) as server:
        say(f"viewer: {server.address} (on this machine only; Ctrl-C ends it)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


def main() -> int:
    """Serve the runs that the command line names."""
    return door(__doc__, {"": RunWords}, lambda words: view(read_runs(words)))


if __name__ == "__main__":
    sys.exit(main())
