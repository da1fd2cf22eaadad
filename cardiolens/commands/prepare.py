"""`python -m cardiolens.prepare dataset=...`: read study folders into shards, if they changed."""

import sys

from cardiolens.commands.command import run_verb
from cardiolens.workflow.steps.prepare_studies import prepare_dataset


def main() -> int:
    """Prepare the dataset that the command line names."""
    return run_verb(prepare_dataset, doc=__doc__)


if __name__ == "__main__":
    sys.exit(main())
