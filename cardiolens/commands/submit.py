"""`python -m cardiolens.submit +experiment=... cluster=slurm`: run a sweep as jobs of a SLURM cluster.

One job prepares the studies, one job per model answers, and one job scores what was completed and writes the
page. `mode=plan` prints jobs and scripts without submitting. Repeating the command submits what is missing.
"""

import sys

from cardiolens.commands.command import run_verb
from cardiolens.workflow.slurm.submission import submit


def main() -> int:
    """Submit the sweep that the command line describes."""
    return run_verb(submit, doc=__doc__)


if __name__ == "__main__":
    sys.exit(main())
