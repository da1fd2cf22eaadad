"""`python -m cardiolens.release questions=... studies=... name=... licence=... out=...`: make a release.

`verify=FOLDER` compares a release with its index, and the index with `sha256=DIGEST` where that is given.
`harness=FOLDER out=...` makes a task folder for lmms-eval of it.
"""

import sys
from typing import Annotated

from pydantic import Field

from cardiolens.commands.command import door
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import read_words
from cardiolens.curation.release.make import release
from cardiolens.curation.release.make_tasks import Harness, make_tasks
from cardiolens.curation.release.release_words import Release
from cardiolens.curation.release.verify import verify


class VerifyWords(Spec):
    """The words of the command that compares a release with its index."""

    verify: GivenPath
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None  # of its release.json


def main() -> int:
    """Make or verify a release, or make a task folder of one."""
    return door(__doc__, {"": Release, "verify": VerifyWords, "harness": Harness}, _release)


def _release(words: list[str]) -> int:
    names = {word.partition("=")[0] for word in words}
    if "verify" in names:
        place = read_words(VerifyWords, words)
        return verify(place.verify, place.sha256)
    return make_tasks(words) if "harness" in names else release(words)


if __name__ == "__main__":
    sys.exit(main())
