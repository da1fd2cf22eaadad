"""`python -m cardiolens.work run=outputs/... step=prepare|model|score`: one job of a submitted run.

The batch scripts of `cardiolens.submit` call it; it can also be called by hand. `step=model` needs `model=`,
and takes the `address=` of a Ray cluster and the number of `nodes=` that this cluster must have.
"""

import logging
import sys

from cardiolens.cluster.stopping import StoppedError
from cardiolens.errors import InputError, RunError
from cardiolens.plain import PlainFormatter
from cardiolens.slurm.work import read_words, work
from cardiolens.terminal.verb import begin, tell


def main() -> int:
    """Do the step that the command line names."""
    begin()
    shown = logging.StreamHandler()
    shown.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[shown])
    try:
        return work(read_words(sys.argv[1:]))
    except (InputError, RunError, StoppedError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
