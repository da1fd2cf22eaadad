"""Show a study as models see it: `jobs/show_study.py <study folder> out.png [phases] [segments=true]`.

Windows are those of the dataset that further words name, as for a sweep: `dataset=real`,
`dataset.window_pct=[2,98]`, `dataset.windows.lge=[1,99.5]`.
"""

import sys
from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.storage.permissions import be_private
from cardiolens.study.sheet import study_sheet

USAGE = (
    "expected: python jobs/show_study.py <study folder> <picture.png> [phases] [segments=true] "
    "[dataset=...] [dataset.window_pct=[low,high]]"
)
SEGMENTS = {"segments=true": True, "segments=false": False}


def main(argv: list[str]) -> int:
    """Write the contact sheet of a study folder, by default 8 phases per slice; return 2 if unreadable."""
    be_private()
    options = [word for word in argv if word.startswith("dataset")]
    words = [word for word in argv if word not in SEGMENTS and word not in options]
    segments = any(SEGMENTS.get(word, False) for word in argv)
    if len(words) not in (2, 3) or not all(word.isdigit() and int(word) for word in words[2:]):
        print(USAGE, file=sys.stderr)
        return 2
    try:
        windows, phases = read_spec(options).dataset.display, int(words[2]) if words[2:] else 8
        study_sheet(Path(words[0]), phases, windows, segments=segments).save(words[1])
    except (InputError, OSError, ValueError) as error:
        print(f"error: {words[0]}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
