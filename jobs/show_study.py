"""Show a study as models see it: `python jobs/show_study.py <study folder> out.png [phases]`."""

import sys
from pathlib import Path

from cardiolens.errors import InputError
from cardiolens.study.sheet import study_sheet


def main(argv: list[str]) -> int:
    """Write the contact sheet of a study folder, 8 phases a slice unless told; 2 if it cannot be read."""
    if len(argv) not in (2, 3) or not all(word.isdigit() for word in argv[2:]):
        print("expected: python jobs/show_study.py <study folder> <picture.png> [phases]", file=sys.stderr)
        return 2
    try:
        study_sheet(Path(argv[0]), *map(int, argv[2:] or ["8"])).save(argv[1])
    except (InputError, OSError, ValueError) as error:
        print(f"error: {argv[0]}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
