"""`python -m cardiolens.confirm out=/data`: serve a page on which a person confirms an import."""

from contextlib import suppress
from typing import Annotated

from pydantic import Field

from cardiolens.base.console import say, shown_word
from cardiolens.base.phrasing import counted
from cardiolens.commands.command import Action, verb
from cardiolens.config.base import GivenPath, Spec
from cardiolens.curation.ingest.confirm_server import Desk, desk_server, read_imported
from cardiolens.curation.ingest.decisions import Ledger


class Words(Spec):
    """Words of the command."""

    out: GivenPath  # the folder of an import
    decisions: GivenPath | None = None  # the file of decisions; None: <out>.decisions.jsonl
    port: Annotated[int, Field(ge=0, le=65535)] = 0  # 0: a free port


def confirm(words: Words) -> int:
    """Serve the page until interrupted."""
    out = words.out
    decisions = words.decisions or out.with_name(f"{out.resolve().name}.decisions.jsonl")
    desk = Desk(out, read_imported(out), Ledger(decisions))
    with suppress(KeyboardInterrupt), desk_server(desk, words.port) as server:
        say(f"{counted(len(desk.studies), 'study')}: {server.address} (this machine only; Ctrl-C ends it)")
        say(f"decisions: {decisions}")
        say(
            f"next: python -m cardiolens.ingest source=... {shown_word('out', out)} "
            f"{shown_word('decisions', decisions)}"
        )
        server.serve_forever()
    return 0


main = verb(__name__, __doc__, Action(Words, confirm))
