"""`python -m cardiolens.release questions=... studies=... name=... licence=... out=...`: make a release.

`verify=FOLDER` compares a release with its index, and the index with `sha256=DIGEST` where that is given.
`harness=FOLDER out=...` makes a task folder for lmms-eval of it.
"""

import sys

from cardiolens.commands.command import door
from cardiolens.config.command_words import VerifyWords, verify_words
from cardiolens.curation.release.make import release
from cardiolens.curation.release.make_tasks import Harness, make_tasks
from cardiolens.curation.release.release_words import Release
from cardiolens.curation.release.verify import verify


def main() -> int:
    """Make or verify a release, or make a task folder of one."""
    return door(__doc__, {"": Release, "verify": VerifyWords, "harness": Harness}, _release)


def _release(words: list[str]) -> int:
    if (given := verify_words(words)) is not None:
        return verify(given.verify, given.sha256)
    is_harness = any(word.startswith("harness=") for word in words)
    return make_tasks(words) if is_harness else release(words)


if __name__ == "__main__":
    sys.exit(main())
