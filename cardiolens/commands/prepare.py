"""`python -m cardiolens.prepare`: study folders → shards, in parallel; unchanged studies are skipped."""

import sys

from cardiolens.workflow.steps.prepare_studies import prepare_dataset


def main() -> int:
    """Prepare the dataset that the command line names."""
    from cardiolens.commands.command import run_verb

    return run_verb(prepare_dataset)


if __name__ == "__main__":
    sys.exit(main())
