"""`python -m cardiolens.review questions=... studies=... out=... mode=verify|read`: people check questions.

`add reader=... out=...` makes an account first; `export out=...` writes what the review comes to.
"""

import sys
from collections.abc import Sequence


def main() -> int:
    """Do what the first word says; without one, serve the page."""
    from cardiolens.base.errors import InputError, RunError
    from cardiolens.commands.command import begin, tell
    from cardiolens.curation.review.review_commands import add, export, serve
    from cardiolens.runtime.stopping import StoppedError

    begin()
    action, words = split(sys.argv[1:])
    try:
        return {"add": add, "export": export, "": serve}[action](words)
    except (InputError, RunError, StoppedError) as error:
        return tell(error)


def split(words: Sequence[str]) -> tuple[str, list[str]]:
    """The action that stands first, if one does, and the other words."""
    if words and words[0] in ("add", "export"):
        return words[0], list(words[1:])
    return "", list(words)


if __name__ == "__main__":
    sys.exit(main())
