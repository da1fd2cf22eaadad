"""`python -m cardiolens.report run=outputs/...`: the page of a run; `runs=[...]` sees several as one."""

import sys
from collections.abc import Sequence

from cardiolens import show
from cardiolens.configure import read_runs, tell
from cardiolens.errors import InputError, RunError
from cardiolens.judge import judge_together
from cardiolens.merging import merged_run
from cardiolens.page.write import write_page
from cardiolens.store import Run


def report(runs: Sequence[Run]) -> int:
    """Write the page of a run, or of several, which are judged together where that was not done."""
    view = runs[0] if len(runs) == 1 else merged_run(runs)
    if len(runs) > 1 and not view.analyses.exists():
        judge_together(runs)
    show.say(f"page: {write_page(view, runs)}")
    return 0


def main() -> int:
    try:
        return report(read_runs(sys.argv[1:]))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
