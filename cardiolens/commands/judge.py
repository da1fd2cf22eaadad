"""`python -m cardiolens.judge run=outputs/...`: judge the replies of a run again, without an engine.

Replaces verdicts, scores and analyses. `runs=[outputs/...,outputs/...]` judges several runs as one. With
`reading=all` the stored replies are also scored by three rules of other evaluations. A table on the page and
in the export shows scores and ranks side by side: how much of the ranking is the reader.
"""

import sys
from typing import Literal, Self

from pydantic import model_validator

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.config.command_words import read_words
from cardiolens.storage.run_word import RunWords
from cardiolens.workflow.steps.judge_run import judge, judge_together


class JudgeWords(RunWords):
    """The words of the command."""

    reading: Literal["strict", "all"] = "strict"  # all: also by three rules of other evaluations

    @model_validator(mode="after")
    def _of_one_run(self) -> Self:
        if self.reading == "all" and self.runs is not None:
            raise ValueError("reading: all is of one run; give run=... in the place of runs=[...]")
        return self


def main() -> int:
    begin()
    try:
        words = read_words(JudgeWords, sys.argv[1:])
        runs = words.open()
        if len(runs) == 1:
            return judge(runs[0], by_others=words.reading == "all")
        return judge_together(runs)
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
