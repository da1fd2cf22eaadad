"""Show the frames that selectors choose from one study: one picture per subtask, or JSON Lines (format=json).

    python jobs/show_selection.py study=path/to/folder subtask=[C06,L02] selector=[clinical] budget=[8,16]

`study` is a study folder or the name of one in the dataset's `studies`. A picture needs the volumes; a record
only study.json, except for selectors that look at frames. Pictures go to the folder `out`.
"""

import json
import sys
from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.protocol.select.show_selection import draw, find_study, records
from cardiolens.storage.permissions import be_private

OWN = {"study": "", "format": "picture", "out": "outputs/selection"}


def main(words: list[str]) -> int:
    """Show the selections; return 2 if an argument cannot be used, else 0."""
    be_private()
    given = dict(word.split("=", 1) for word in words if word.partition("=")[0] in OWN and "=" in word)
    own = OWN | given
    try:
        spec = read_spec([word for word in words if word.partition("=")[0] not in OWN])
        if own["format"] not in ("picture", "json"):
            raise InputError(f"format {own['format']!r} is neither 'picture' nor 'json'")
        study = find_study(own["study"], spec)
        if own["format"] == "json":
            print("\n".join(map(json.dumps, records(study, spec))))
        else:
            print("\n".join(map(str, draw(study, spec, Path(own["out"])))))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
