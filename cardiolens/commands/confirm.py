"""`python -m cardiolens.confirm out=/data`: what the import proposes, confirmed on a page."""

import sys
from collections.abc import Sequence
from pathlib import Path

from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.curation.ingest.confirm.confirm_server import Desk, desk_server
from cardiolens.curation.ingest.confirm.imported import read_imported
from cardiolens.curation.ingest.decisions import Ledger


def read_words(argv: Sequence[str]) -> tuple[Path, Path]:
    """The import and the file of decisions that `out=... decisions=...` name, else InputError."""
    given = dict(word.partition("=")[::2] for word in argv)
    if len(given) != len(argv) or not given.keys() <= {"out", "decisions"} or not all(given.values()):
        raise InputError(f"{' '.join(argv) or 'no words'}: give out=FOLDER and, if you like, decisions=FILE")
    if "out" not in given:
        raise InputError("out has no value; give the folder of an import: out=...")
    out = Path(given["out"])
    beside = out.with_name(f"{out.resolve().name}.decisions.jsonl")
    return out, Path(given["decisions"]) if "decisions" in given else beside


def confirm(out: Path, decisions: Path) -> int:
    """Serve the page until interrupted."""
    desk = Desk(read_imported(out), Ledger(decisions))
    with desk_server(desk) as server:
        say(f"{len(desk.studies)} studies: {server.address} (this machine only; Ctrl-C ends it)")
        say(f"decisions: {decisions}")
        say(f"next: python -m cardiolens.ingest source=... out={out} decisions={decisions}")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


def main() -> int:
    begin()
    try:
        return confirm(*read_words(sys.argv[1:]))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
