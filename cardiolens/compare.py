"""`python -m cardiolens.compare a=outputs/... b=outputs/...`: what changed from one run to another.

Arms are matched by model, selection, budget, prompt and control. The exit code is a gate: 0 where no tier of
any arm is shown to be lower in b by more than `margin` points (2 unless given), 1 where one is, 2 where the
runs cannot be compared.
"""

import math
import sys
from collections.abc import Sequence

from cardiolens.errors import InputError, RunError
from cardiolens.findings.sentences import signed
from cardiolens.record.places import Run
from cardiolens.results.compare import compared, configuration_changes
from cardiolens.stats.inference import MARGIN
from cardiolens.terminal.console import say
from cardiolens.terminal.verb import read_run, tell


def compare(first: Run, second: Run, margin: float) -> int:
    """Say what changed from the first run to the second; 1 if some tier is shown to be worse."""
    for line in configuration_changes(first, second):
        say(f"configuration: {line}")
    found = compared(first, second)
    for one in found:
        interval = "no interval" if math.isnan(one.low) else f"{signed(one.low)} to {signed(one.high)}"
        verdict = "worse" if one.worse(margin) else "not shown to be worse"
        say(
            f"{one.arm}, {one.scope.replace(':', ' ')}: {signed(one.value)} points (95 % CI {interval}), "
            f"{one.n_patients} patients, {one.n_items} items, {one.gained} gained, {one.lost} lost: {verdict}"
        )
    worse = sum(one.worse(margin) for one in found)
    say(f"{worse} of {len(found)} shown to be worse by more than {margin:g} points")
    return 1 if worse else 0


def read_words(words: Sequence[str]) -> tuple[Run, Run, float]:
    """The two runs and the margin that the command line names."""
    given = dict(word.split("=", 1) for word in words if "=" in word)
    if not {"a", "b"} <= given.keys() <= {"a", "b", "margin"} or len(given) != len(words):
        raise InputError(
            f"{' '.join(words) or 'no words'}: give a=outputs/... b=outputs/... and, if wanted, margin=2"
        )
    try:
        margin = float(given.get("margin", MARGIN))
    except ValueError:
        margin = math.nan
    if not 0 <= margin < 100:
        raise InputError(
            f"margin={given['margin']}: expected points of score, 0 or more and below 100, e.g. margin=2"
        )
    return read_run([f"run={given['a']}"]), read_run([f"run={given['b']}"]), margin


def main() -> int:
    try:
        return compare(*read_words(sys.argv[1:]))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
