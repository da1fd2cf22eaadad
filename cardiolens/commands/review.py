"""`python -m cardiolens.review questions=... studies=... out=... mode=...`: serve questions to people.

`add reader=... out=...` makes an account first; `export out=...` writes the result of the review.
"""

import sys
from collections.abc import Sequence


def main() -> int:
    """Do the action that the first word names; without an action, serve the page."""
    from cardiolens.base.errors import InputError, RunError
    from cardiolens.commands.command import begin, tell
    from cardiolens.curation.review.review_commands import Add, Export, Serve, add, export, serve
    from cardiolens.runtime.stopping import StoppedError

    begin(__doc__, {"": Serve, "add": Add, "export": Export})
    action, words = split(sys.argv[1:])
    try:
        return {"add": add, "export": export, "": serve}[action](words)
    except (InputError, RunError, StoppedError) as error:
        return tell(error)


def split(words: Sequence[str]) -> tuple[str, list[str]]:
    """Separate the action, if the first word is one, from the other words."""
    if words and words[0] in ("add", "export"):
        return words[0], list(words[1:])
    return "", list(words)


if __name__ == "__main__":
    sys.exit(main())
