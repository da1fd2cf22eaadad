"""`python -m cardiolens.train_reader out=...`: train the small reader on phantom cohorts."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec


def main(argv: Sequence[str] | None = None) -> int:
    """Make the cohorts, train on them, and write the model; continue a training that was stopped."""
    from cardiolens.base.errors import InputError, RunError
    from cardiolens.commands.command import begin, tell
    from cardiolens.config.compose import read_reader_spec

    begin()
    try:
        if find_spec("torch") is None:
            raise InputError(
                "training needs PyTorch, which is not installed; run `make setup`, or add the extra encoder"
            )
        from cardiolens.reader.train import train_reader

        return train_reader(read_reader_spec(list(sys.argv[1:] if argv is None else argv)))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
