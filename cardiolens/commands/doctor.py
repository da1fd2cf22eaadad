"""`python -m cardiolens.doctor +experiment=...`: look for what the sweep will need on this machine.

Prints one line for each check that sweep and submit make: `ok`, or `FIX` with the remedy. Exit code 1 if one
is to fix.
"""

import sys

from cardiolens.commands.command import run_verb
from cardiolens.workflow.examination import examine


def main() -> int:
    """Examine this machine for the sweep that the command line describes."""
    return run_verb(examine, doc=__doc__)


if __name__ == "__main__":
    sys.exit(main())
