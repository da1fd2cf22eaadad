"""`python -m cardiolens.report run=outputs/...`: the page of a run; `runs=[...]` shows several runs as one.

`page.include_images=true` stores frames beside the page, for the case viewer.
"""

import sys
from collections.abc import Sequence

from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.show.page.write import write_page
from cardiolens.storage.places import Run
from cardiolens.storage.run_word import read_runs
from cardiolens.workflow.steps.judge_run import joined

_IMAGES = {"page.include_images=true": True, "page.include_images=false": False}


def report(runs: Sequence[Run], *, include_images: bool) -> int:
    """Write the page of a run, or one page of several runs."""
    say(f"page: {write_page(joined(runs), runs, include_images=include_images)}")
    return 0


def main() -> int:
    begin()
    words = sys.argv[1:]
    try:
        runs = read_runs([word for word in words if word not in _IMAGES])
        return report(runs, include_images=any(_IMAGES.get(word, False) for word in words))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
