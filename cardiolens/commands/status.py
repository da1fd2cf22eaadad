"""`python -m cardiolens.status run=outputs/...`: progress of each model of a run, from the disk and SLURM.

Without SLURM, or after its jobs have ended, the status comes from the disk alone.
"""

import sys

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.storage.run_word import read_run
from cardiolens.workflow.slurm.run_status import status


def main() -> int:
    """Show the run that the command line names."""
    begin()
    try:
        return status(read_run(sys.argv[1:]))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
