"""`python -m cardiolens.report run=outputs/...`: write the page of a run, or with `runs=[...]` of several.

`page.include_images=true` stores frames beside the page, for the case viewer.
"""

import sys

from pydantic import Field

from cardiolens.base.console import say
from cardiolens.commands.command import door
from cardiolens.config.command_words import read_words
from cardiolens.show.page.write import write_page
from cardiolens.storage.places import RunWords
from cardiolens.workflow.steps.judge_run import joined


class Words(RunWords):
    """Words of the command."""

    # frames beside the page, for the case viewer
    include_images: bool = Field(False, alias="page.include_images")


def report(words: Words) -> int:
    """Write the page of a run, or one page of several runs."""
    runs = words.open()
    say(f"page: {write_page(joined(runs), runs, include_images=words.include_images)}")
    return 0


def main() -> int:
    """Write the page that the command line names."""
    return door(__doc__, {"": Words}, lambda words: report(read_words(Words, words)))


if __name__ == "__main__":
    sys.exit(main())
