"""Show the frames that selectors choose from one study: one picture per subtask, or JSON Lines (format=json).

    python jobs/show_selection.py study=path/to/folder subtask=[C06,L02] selector=[clinical] budget=[8,16]

`study` is a study folder, or the name of a folder in the dataset's `studies`. A picture needs the volumes; a
record needs only study.json, unless the selector looks at frames. Pictures go to the folder `out`.
"""

import json
import sys
from pathlib import Path
from typing import Literal

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin_job, tell
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import split_words
from cardiolens.config.compose import read_spec
from cardiolens.protocol.select.show_selection import draw, find_study, records


class Words(Spec):
    """Words of the script, beside those of a sweep."""

    study: str  # the folder of the study, or the name of a folder in the dataset's `studies`
    format: Literal["picture", "json"] = "picture"
    out: GivenPath = Path("outputs/selection")  # of pictures


def main(argv: list[str]) -> int:
    """Show the selections; return 2 if a word cannot be used, 1 if a selection cannot be made, else 0."""
    begin_job(argv, __doc__)
    try:
        words, sweep_words = split_words(Words, argv)
        spec = read_spec(sweep_words)
        study = find_study(words.study, spec)
        if words.format == "json":
            print("\n".join(map(json.dumps, records(study, spec))))
        else:
            print("\n".join(map(str, draw(study, spec, words.out))))
    except (InputError, RunError) as error:
        return tell(error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
