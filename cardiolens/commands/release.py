"""`python -m cardiolens.release questions=... studies=... name=... licence=... out=...`: make a release.

`verify=FOLDER` compares a release with its index; `harness=FOLDER out=...` makes task folders for other
harnesses of it.
"""

import sys

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell


def main() -> int:
    """Make a release, verify one, or make task folders of one."""
    from cardiolens.config.command_words import verify_word
    from cardiolens.curation.release.harness.make_tasks import make_tasks
    from cardiolens.curation.release.make import release
    from cardiolens.curation.release.verify import verify

    begin()
    words = sys.argv[1:]
    try:
        if (word := verify_word(words)) is not None:
            return verify(word.verify)
        if any(word.startswith("harness=") for word in words):
            return make_tasks(words)
        return release(words)
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
