"""Write the JSON Schemas of studies and questions into the package: `python jobs/make_schemas.py`."""

import json
import sys
from importlib.resources import files
from pathlib import Path

from cardiolens.commands.command import begin_job, begin_without_words
from cardiolens.protocol.tasks import question_schema as question
from cardiolens.study import schema as study


def schemas() -> dict[Path, str]:
    """Return the text of every schema by its file."""
    made = {
        f"cardiolens.study/{study.SCHEMA_NAME}": study.study_schema(),
        f"cardiolens.protocol.tasks/{question.SCHEMA_NAME}": question.question_schema(),
    }
    return {_path(place): json.dumps(tree, indent=1) + "\n" for place, tree in made.items()}


def _path(place: str) -> Path:
    package, name = place.split("/")
    return Path(str(files(package))) / name


def main(argv: list[str]) -> int:
    """Write every file; return 2 if words are given, else 0."""
    begin_job(argv, __doc__)
    if code := begin_without_words(argv):
        return code
    for path, text in schemas().items():
        path.write_text(text, encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
