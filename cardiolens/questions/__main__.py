"""`python -m cardiolens.questions reports=... studies=... out=... [model=...]`: reports → draft questions."""

import sys
from collections.abc import Sequence


def main() -> int:
    """Make questions of the reports that the command line names."""
    from cardiolens.config.compose import read_questions_spec
    from cardiolens.errors import InputError, RunError
    from cardiolens.questions.run import questions
    from cardiolens.terminal.verb import begin, tell

    begin()
    own, about_model = split(sys.argv[1:])
    try:
        return questions(read_questions_spec(own), None)
    except (InputError, RunError) as error:
        return tell(error)


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words on reports, and those on the model that reads them, which are a sweep's."""
    about_model = [word for word in words if word.partition("=")[0].split(".")[0] in ("model", "cluster", "stream")]
    return [word for word in words if word not in about_model], about_model


if __name__ == "__main__":
    sys.exit(main())
