"""`python -m cardiolens.view run=outputs/...`: the case viewer with frames, served on this machine only.

`runs=[outputs/...,outputs/...]` shows several runs as one.
"""

import sys
from collections.abc import Sequence

from cardiolens.errors import InputError, RunError
from cardiolens.page.case_viewer.cases import case_reader, read_sources
from cardiolens.page.case_viewer.server import Served, address_of, server_of
from cardiolens.page.case_viewer.write import render_viewer, script_of
from cardiolens.page.facts import read_facts
from cardiolens.record.places import Run
from cardiolens.steps.judge import joined
from cardiolens.terminal.console import say
from cardiolens.terminal.verb import begin, read_runs, tell


def served_of(runs: Sequence[Run]) -> Served:
    """The content of the viewer for one run, or for several as one; nothing is written to disk."""
    run = joined(runs)
    facts = read_facts(run, runs)
    sources = read_sources(run, runs, facts)
    cases = case_reader(sources)
    return Served(
        index=render_viewer(sources, facts, images=True),
        script=lambda number: script_of(number, cases(number)),
        store=facts.specs[0].store,
        studies=tuple(sources.studies),
    )


def view(runs: Sequence[Run]) -> int:
    """Serve the case viewer until interrupted."""
    served = served_of(runs)
    with server_of(served) as server:
        say(f"viewer: {address_of(server, served)} (on this machine only; Ctrl-C ends it)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


def main() -> int:
    begin()
    try:
        return view(read_runs(sys.argv[1:]))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
