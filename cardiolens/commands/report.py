"""`python -m cardiolens.report run=outputs/...`: write the page of a run, or with `runs=[...]` of several.

`page.include_images=true` stores frames beside the page, for the case viewer.
"""

import sys
from collections.abc import Sequence

from pydantic import Field

from cardiolens.base.console import say
from cardiolens.commands.command import door
from cardiolens.config.command_words import read_words
from cardiolens.show.page.write import write_page
from cardiolens.storage.places import Run, RunWords
from cardiolens.workflow.steps.judge_run import joined


class Words(RunWords):
    """Words of the command."""

    include_images: bool = Field(
        False, alias="page.include_images"
    )  # frames beside the page, for the case viewer


def report(runs: Sequence[Run], *, include_images: bool) -> int:
    """Write the page of a run, or one page of several runs."""
    say(f"page: {write_page(joined(runs), runs, include_images=include_images)}")
    return 0


def _report(given: list[str]) -> int:
    words = read_words(Words, given)
    return report(words.open(), include_images=words.include_images)


def main() -> int:
    """Write the page that the command line names."""
    return door(__doc__, {"": Words}, _report)


if __name__ == "__main__":
    sys.exit(main())
