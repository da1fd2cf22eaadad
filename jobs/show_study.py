"""Show a study as models see it: `jobs/show_study.py <study folder> out.png [phases] [segments=true]`."""

import sys
from pathlib import Path

from cardiolens.errors import InputError
from cardiolens.record.privacy import be_private
from cardiolens.study.sheet import study_sheet

USAGE = "expected: python jobs/show_study.py <study folder> <picture.png> [phases] [segments=true]"
SEGMENTS = {"segments=true": True, "segments=false": False}


def main(argv: list[str]) -> int:
    """Write the contact sheet of a study folder, by default 8 phases per slice; return 2 if unreadable."""
    be_private()
    words = [word for word in argv if word not in SEGMENTS]
    segments = any(SEGMENTS.get(word, False) for word in argv)
    if len(words) not in (2, 3) or not all(word.isdigit() and int(word) for word in words[2:]):
        print(USAGE, file=sys.stderr)
        return 2
    try:
        study_sheet(Path(words[0]), *map(int, words[2:] or ["8"]), segments=segments).save(words[1])
    except (InputError, OSError, ValueError) as error:
        print(f"error: {words[0]}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
