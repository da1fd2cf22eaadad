"""Compare the goldens with what the code gives today, or make some of them anew.

python -m tests.golden                    # compare all but the slow ones; 1 if one differs
python -m tests.golden plan_demo release  # compare these
python -m tests.golden make release       # write this one anew; say why in CHANGELOG.md
"""

import sys
import time

from tests.golden.goldens import GOLDENS, SLOW, difference, made, write


def main(words: list[str]) -> int:
    """Return 1 if a golden differs, 2 if a word is not the name of one, else 0."""
    making = words[:1] == ["make"]
    names = words[making:] or ([] if making else [name for name in GOLDENS if name not in SLOW])
    unknown = [name for name in names if name not in GOLDENS]
    if unknown or not names:
        print(
            f"golden {' '.join(unknown) or '(none named)'}: expected of {', '.join(GOLDENS)}", file=sys.stderr
        )
        return 2
    differ = 0
    for name in names:
        start = time.perf_counter()
        today = made(name)
        if making:
            write(name, today)
        found = "" if making else difference(name, today)
        differ += bool(found)
        print(
            f"{name}: {found or ('made' if making else 'equal')} ({time.perf_counter() - start:.0f} s)",
            flush=True,
        )
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
