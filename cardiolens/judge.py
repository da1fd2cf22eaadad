"""`python -m cardiolens.judge run=outputs/...`: verdicts, scores and analyses again, without an engine.

`runs=[outputs/...,outputs/...]` sees several runs as one.
"""

import sys

from cardiolens.errors import InputError, RunError
from cardiolens.steps.judge import judge, judge_together
from cardiolens.terminal.verb import read_runs, tell


def main() -> int:
    try:
        runs = read_runs(sys.argv[1:])
        return judge(runs[0]) if len(runs) == 1 else judge_together(runs)
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
