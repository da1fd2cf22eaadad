"""`python -m cardiolens.review questions=... studies=... out=... mode=...`: serve questions to people.

Each of `readers=` gets a link of their own; `export out=...` writes the result of the review. `audit run=...`
has a person read a sample of a run's replies, without our reading, and `report run=...` prints how often the
rules misread, by model, and what it could do to the scores.
"""

import sys

from cardiolens.commands.command import door
from cardiolens.curation.review.audit import Audit, audit, report
from cardiolens.curation.review.review_commands import Export, Serve, export, serve
from cardiolens.storage.places import RunWord

ACTIONS = {"export": export, "audit": audit, "report": report}


def main() -> int:
    """Do the action that the first word names; without an action, serve the page."""
    return door(__doc__, {"": Serve, "export": Export, "audit": Audit, "report": RunWord}, _review)


def _review(words: list[str]) -> int:
    name = words[0] if words else ""
    return ACTIONS[name](words[1:]) if name in ACTIONS else serve(words)


if __name__ == "__main__":
    sys.exit(main())
