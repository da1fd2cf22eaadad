"""`python -m cardiolens.work run=outputs/... step=prepare|model|score`: one job of a submitted run.

The batch scripts of `cardiolens.submit` call this verb; so can a person. `step=model` needs `model=`, and
takes the `address=` of a Ray cluster and the number of `nodes=` that this cluster must have.
"""

import logging
import sys

from cardiolens.base.errors import InputError, RunError
from cardiolens.base.sanitize import PlainFormatter
from cardiolens.commands.command import begin, tell
from cardiolens.config.command_words import read_words
from cardiolens.inference.stream import stall_clock
from cardiolens.runtime.stopping import StoppedError
from cardiolens.workflow.slurm.job_steps import Words, work


def main() -> int:
    """Do the step that the command line names."""
    begin()
    shown = logging.StreamHandler()
    shown.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[shown])
    # How far engines have loaded: a job has no other log.
    logging.getLogger(stall_clock.__name__).setLevel(logging.INFO)
    try:
        return work(read_words(Words, sys.argv[1:]))
    except (InputError, RunError, StoppedError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
