"""`python -m cardiolens.submit +experiment=... cluster=slurm`: a sweep as jobs of a SLURM cluster.

Prepare, one job per model, then score and page of whatever finished. `mode=plan` prints everything and
submits nothing. The same command again submits what is missing.
"""

import sys

from cardiolens.slurm.submit import submit
from cardiolens.terminal.verb import run_verb


def main() -> int:
    """Submit the sweep that the command line describes."""
    return run_verb(submit)


if __name__ == "__main__":
    sys.exit(main())
