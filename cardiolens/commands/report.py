"""`python -m cardiolens.report run=outputs/...`: write the page of a run, or with `runs=[...]` of several.

`page.include_images=true` stores frames beside the page, for the case viewer.
"""

from pydantic import Field

from cardiolens.base.console import say
from cardiolens.commands.command import Action, verb
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


main = verb(__name__, __doc__, Action(Words, report))
