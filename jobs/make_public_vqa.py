"""Make a stand-in for a public benchmark with known answers:
`python jobs/make_public_vqa.py benchmark=slake out=some/folder [pictures=40] [seed=2026]`.
"""

from typing import Literal

from cardiolens.commands.command import Action, verb
from cardiolens.config.base import GivenPath, Positive, Seed, Spec
from tests.support.cases.example_sets import PICTURES, SEED, make_benchmark


class Words(Spec):
    """Words of the script."""

    benchmark: Literal["vqa_rad", "slake", "omnimedvqa"]
    out: GivenPath
    pictures: Positive = PICTURES
    seed: Seed = SEED


def make(words: Words) -> int:
    """Make the files."""
    make_benchmark(words.benchmark, words.out, words.pictures, words.seed)
    print(f"{words.benchmark}: {words.out}")
    return 0


main = verb(__name__, __doc__, Action(Words, make))
