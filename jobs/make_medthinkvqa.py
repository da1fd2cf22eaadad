"""Make invented cases in the form of MedThinkVQA with known answers:
`python jobs/make_medthinkvqa.py out=some/folder [test=720] [train=12] [seed=2026]`.
"""

import sys

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin_job, print_error
from cardiolens.config.base import GivenPath, Positive, Seed, Spec
from cardiolens.config.command_words import read_words
from tests.support.cases.example_cases import SEED, TEST, TRAIN, make_cases


class Words(Spec):
    """Words of the script."""

    out: GivenPath
    test: Positive = TEST  # cases of the test split
    train: Positive = TRAIN
    seed: Seed = SEED


def main(argv: list[str]) -> int:
    """Make the cases; return 2 if a word is wrong, 1 if making fails, else 0."""
    begin_job(argv, __doc__)
    try:
        words = read_words(Words, argv)
        make_cases(words.out, words.test, words.train, words.seed)
    except (InputError, RunError) as error:
        return print_error(error)
    print(f"cases: {words.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
