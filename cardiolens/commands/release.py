"""`python -m cardiolens.release questions=... studies=... name=... licence=... out=...`: make a release.

`verify=FOLDER` compares a release with its index, and the index with `sha256=DIGEST` where that is given.
`harness=FOLDER out=...` makes a task folder for lmms-eval of it.
"""

from typing import Annotated

from pydantic import Field

from cardiolens.commands.command import Action, verb
from cardiolens.config.base import GivenPath, Spec
from cardiolens.curation.release.make import release
from cardiolens.curation.release.make_tasks import Harness, make_tasks
from cardiolens.curation.release.release_words import Release
from cardiolens.curation.release.verify import verify


class VerifyWords(Spec):
    """The words of the command that compares a release with its index."""

    verify: GivenPath
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None  # of its release.json


main = verb(
    __name__,
    __doc__,
    Action(Release, release),
    Action(VerifyWords, lambda words: verify(words.verify, words.sha256), "a comparison with the index"),
    Action(Harness, make_tasks, "a task folder"),
)
