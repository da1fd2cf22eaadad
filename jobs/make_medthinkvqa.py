"""Make invented cases in the form of MedThinkVQA with known answers:
`python jobs/make_medthinkvqa.py out=some/folder [test=720] [train=12] [seed=2026]`.
"""

import sys
from pathlib import Path

from cardiolens.base.errors import InputError, RunError
from cardiolens.protocol.medthinkvqa.example_cases import SEED, TEST, TRAIN, make_cases
from cardiolens.storage.permissions import be_private

_NUMBERS = {"test": TEST, "train": TRAIN, "seed": SEED}


def main(argv: list[str]) -> int:
    """Make the cases; return 2 if the input is wrong, 1 if making fails, else 0."""
    be_private()
    try:
        words = dict(word.partition("=")[::2] for word in argv)
        if unknown := sorted(words.keys() - {"out", *_NUMBERS}):
            raise InputError(f"{unknown[0]}: is not known; choose from out, {', '.join(_NUMBERS)}")
        if not words.get("out"):
            raise InputError("out has no value; give a folder: out=...")
        given = {name: _number(name, words.get(name, str(default))) for name, default in _NUMBERS.items()}
        make_cases(Path(words["out"]), given["test"], given["train"], given["seed"])
    except (InputError, RunError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    print(f"cases: {words['out']}")
    return 0


def _number(name: str, text: str) -> int:
    if not text.isdecimal() or (name != "seed" and int(text) < 1):
        raise InputError(f"{name}={text}: expected a whole number from 1; correct it")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
