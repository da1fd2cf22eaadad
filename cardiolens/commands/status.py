"""`python -m cardiolens.status run=outputs/...`: show the progress of each model, from the disk and SLURM.

Without SLURM, or after its jobs have ended, the status comes from the disk alone.
"""

import sys

from cardiolens.commands.command import door
from cardiolens.config.command_words import read_words
from cardiolens.storage.places import RunWord
from cardiolens.workflow.slurm.run_status import status


def main() -> int:
    """Show the run that the command line names."""
    return door(__doc__, {"": RunWord}, lambda words: status(read_words(RunWord, words).open()))


if __name__ == "__main__":
    sys.exit(main())
