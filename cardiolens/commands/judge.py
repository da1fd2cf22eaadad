"""`python -m cardiolens.judge run=outputs/...`: judge the replies of a run again, without an engine.

Replaces verdicts, scores and analyses. `runs=[outputs/...,outputs/...]` judges several runs as one.
"""

import sys

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.storage.run_word import read_runs
from cardiolens.workflow.steps.judge_run import judge, judge_together


def main() -> int:
    begin()
    try:
        runs = read_runs(sys.argv[1:])
        return judge(runs[0]) if len(runs) == 1 else judge_together(runs)
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
