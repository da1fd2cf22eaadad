"""`python -m cardiolens.view run=outputs/...`: serve the case viewer with frames, on this machine only.

`runs=[outputs/...,outputs/...]` shows several runs as one. Cases are read when they are opened.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress

from cardiolens.base.console import say
from cardiolens.commands.command import door
from cardiolens.config.command_words import read_words
from cardiolens.show.page.case_viewer.item_sources import open_sources
from cardiolens.show.page.case_viewer.viewer_server import Viewer, viewer_server
from cardiolens.storage.places import Run, RunWords
from cardiolens.workflow.steps.judge_run import joined


def served_of(runs: Sequence[Run]) -> Viewer:
    """Return the viewer of one run, or of several as one; nothing is written to disk."""
    return Viewer(open_sources(joined(runs), runs))


def view(runs: Sequence[Run]) -> int:
    """Serve the case viewer until interrupted."""
    with suppress(KeyboardInterrupt), viewer_server(served_of(runs)) as server:
        say(f"viewer: {server.address} (on this machine only; Ctrl-C ends it)")
        server.serve_forever()
    return 0


def main() -> int:
    """Serve the runs that the command line names."""
    return door(__doc__, {"": RunWords}, lambda words: view(read_words(RunWords, words).open()))


if __name__ == "__main__":
    sys.exit(main())
