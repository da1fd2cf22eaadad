"""`python -m cardiolens.sweep +experiment=...`: prepare, plan, answer, judge, score and record."""

import logging
import sys

from cardiolens.commands.command import run_verb
from cardiolens.workflow.sweep import sweep

log = logging.getLogger(__name__)


def main() -> int:
    return run_verb(sweep)


if __name__ == "__main__":
    sys.exit(main())
