"""`python -m cardiolens.review questions=... studies=... out=... mode=...`: serve questions to people.

Each of `readers=` gets a link of their own; `export out=...` writes the result of the review. `audit run=...`
has a person read a sample of a run's replies, without our reading, and `report run=...` prints how often the
rules misread, by model, and what it could do to the scores.
"""

import sys


def main() -> int:
    """Do the action that the first word names; without an action, serve the page."""
    from cardiolens.base.errors import InputError, RunError
    from cardiolens.commands.command import begin, tell
    from cardiolens.curation.review.audit import Audit, audit, report
    from cardiolens.curation.review.review_commands import Export, Serve, export, serve
    from cardiolens.runtime.stopping import StoppedError
    from cardiolens.storage.run_place import RunWord

    begin(__doc__, {"": Serve, "export": Export, "audit": Audit, "report": RunWord})
    actions = {"export": export, "audit": audit, "report": report}
    words = sys.argv[1:]
    try:
        if words[:1] and words[0] in actions:
            return actions[words[0]](words[1:])
        return serve(words)
    except (InputError, RunError, StoppedError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
