"""Make invented cases in the form of MedThinkVQA with known answers:
`python jobs/make_medthinkvqa.py out=some/folder [test=720] [train=12] [seed=2026]`.
"""

from cardiolens.commands.command import Action, verb
from cardiolens.config.base import GivenPath, Positive, Seed, Spec
from tests.support.cases.example_cases import SEED, TEST, TRAIN, make_cases


class Words(Spec):
    """Words of the script."""

    out: GivenPath
    test: Positive = TEST  # cases of the test split
    train: Positive = TRAIN
    seed: Seed = SEED


def make(words: Words) -> int:
    """Make the cases."""
    make_cases(words.out, words.test, words.train, words.seed)
    print(f"cases: {words.out}")
    return 0


main = verb(__name__, __doc__, Action(Words, make))
