"""Make a stand-in for a public benchmark with known answers:
`python jobs/make_public_vqa.py benchmark=slake out=some/folder [pictures=40] [seed=2026]`.
"""

import sys
from typing import Literal

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin_job, print_error
from cardiolens.config.base import GivenPath, Positive, Seed, Spec
from cardiolens.config.command_words import read_words
from tests.support.cases.example_sets import PICTURES, SEED, make_benchmark


class Words(Spec):
    """Words of the script."""

    benchmark: Literal["vqa_rad", "slake", "omnimedvqa"]
    out: GivenPath
    pictures: Positive = PICTURES
    seed: Seed = SEED


def main(argv: list[str]) -> int:
    """Make the files; return 2 if a word is wrong, 1 if making fails, else 0."""
    begin_job(argv, __doc__)
    try:
        words = read_words(Words, argv)
        make_benchmark(words.benchmark, words.out, words.pictures, words.seed)
    except (InputError, RunError) as error:
        return print_error(error)
    print(f"{words.benchmark}: {words.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
