"""`python -m cardiolens.release questions=... studies=... name=... licence=... out=...`: make a release.

`verify=FOLDER` compares a release with what it says of itself.
"""

import sys

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell


def main() -> int:
    """Make a release, or verify one."""
    from cardiolens.curation.release.make import release
    from cardiolens.curation.release.verify import verify

    begin()
    words = sys.argv[1:]
    try:
        if len(words) == 1 and words[0].startswith("verify="):
            return verify(words[0].removeprefix("verify="))
        return release(words)
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
