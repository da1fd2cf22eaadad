"""`python -m cardiolens.report run=outputs/...`: the page of a run, or with `runs=[...]` of several as one.

`page.include_images=true` stores frames beside the page, for the case viewer.
"""

import sys
from collections.abc import Sequence

from pydantic import Field

from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.config.command_words import read_words
from cardiolens.show.page.write import write_page
from cardiolens.storage.places import Run
from cardiolens.storage.run_word import RunWords
from cardiolens.workflow.steps.judge_run import joined


class Words(RunWords):
    """Words of the command."""

    include_images: bool = Field(False, alias="page.include_images")


def report(runs: Sequence[Run], *, include_images: bool) -> int:
    """Write the page of a run, or one page of several runs."""
    say(f"page: {write_page(joined(runs), runs, include_images=include_images)}")
    return 0


def main() -> int:
    begin()
    try:
        words = read_words(Words, sys.argv[1:])
        return report(words.open(), include_images=words.include_images)
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
