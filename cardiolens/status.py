"""`python -m cardiolens.status run=outputs/...`: how far each model of a run is, from the disk and SLURM.

Where there is no SLURM, or the jobs are long gone, the disk alone tells.
"""

import sys

from cardiolens.errors import InputError, RunError
from cardiolens.slurm.status import status
from cardiolens.terminal.verb import read_run, tell


def main() -> int:
    """Show the run that the command line names."""
    try:
        return status(read_run(sys.argv[1:]))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
