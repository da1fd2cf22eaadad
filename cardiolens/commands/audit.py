"""`python -m cardiolens.audit run=outputs/...`: a person reads a sample of the replies, without our reading.

`report run=outputs/...` prints how often the rules misread, by model, and what it could do to the scores.
"""

import sys


def main() -> int:
    from cardiolens.base.errors import InputError, RunError
    from cardiolens.commands.command import begin, tell
    from cardiolens.curation.audit.audit_commands import report, serve
    from cardiolens.runtime.stopping import StoppedError

    begin(__doc__)
    words = sys.argv[1:]
    try:
        return report(words[1:]) if words[:1] == ["report"] else serve(words)
    except (InputError, RunError, StoppedError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
