"""`python -m cardiolens.sweep +experiment=...`: ask models all questions, judge and score."""

import sys

from cardiolens.commands.command import run_verb
from cardiolens.workflow.sweep import sweep


def main() -> int:
    """Run the sweep that the command line describes."""
    return run_verb(sweep, doc=__doc__)


if __name__ == "__main__":
    sys.exit(main())
