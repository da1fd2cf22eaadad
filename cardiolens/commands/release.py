"""`python -m cardiolens.release questions=... studies=... name=... licence=... out=...`: make a release.

`verify=FOLDER` compares a release with its index, and the index with `sha256=DIGEST` where that is given.
`harness=FOLDER out=...` makes a task folder for lmms-eval of it.
Of a release with withheld answers, `submit=RUN out=FILE` writes the replies of a run, and `score=FILE
answers=FILE` judges them where the answers are.
"""

import sys

from cardiolens.commands.command import door
from cardiolens.commands.help import Options


def main() -> int:
    """Make or verify a release, make a task folder of one, or submit or score replies to withheld answers."""
    from cardiolens.config.command_words import VerifyWords, read_words, verify_words
    from cardiolens.curation.release.make import release
    from cardiolens.curation.release.make_tasks import Harness, make_tasks
    from cardiolens.curation.release.release_words import Release
    from cardiolens.curation.release.verify import verify
    from cardiolens.curation.release.withheld_answers import Score, Submit, score_submission, submit

    def act(words: list[str]) -> int:
        named = {word.partition("=")[0] for word in words}
        if (given := verify_words(words)) is not None:
            return verify(given.verify, given.sha256)
        if "harness" in named:
            return make_tasks(words)
        if "submit" in named:
            return submit(read_words(Submit, words))
        return score_submission(read_words(Score, words)) if "score" in named else release(words)

    options: Options = {"": Release, "verify": VerifyWords, "harness": Harness}
    return door(__doc__, {**options, "submit": Submit, "score": Score}, act)


if __name__ == "__main__":
    sys.exit(main())
