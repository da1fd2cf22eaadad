"""`python -m cardiolens.work run=outputs/... step=prepare|model|score`: one job of a submitted run.

The batch scripts of `cardiolens.submit` call this verb; so can a person. `step=model` needs `model=`, and
takes the `address=` of a Ray cluster and the number of `nodes=` that this cluster must have.
"""

import logging
import sys

from cardiolens.base.sanitize import PlainFormatter
from cardiolens.commands.command import door
from cardiolens.config.command_words import read_words
from cardiolens.workflow.slurm.job_steps import Words, work


def main() -> int:
    """Do the step that the command line names."""
    return door(__doc__, {"": Words}, _work)


def _work(words: list[str]) -> int:
    shown = logging.StreamHandler()
    shown.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[shown])
    return work(read_words(Words, words))


if __name__ == "__main__":
    sys.exit(main())
