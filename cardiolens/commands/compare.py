"""`python -m cardiolens.compare a=outputs/... b=outputs/...`: the changes from run a to run b.

Arms are matched by model, selection, budget, prompt and control. The exit code is a gate: 1 if some arm is
shown to score lower in b by more than `margin` points (default 2) on some tier, 0 if no arm is, 2 if the runs
cannot be compared.
"""

import math
import sys

from pydantic import Field

from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import read_words
from cardiolens.score.claims.sentences import signed
from cardiolens.score.run_results.run_comparison import compare_runs, configuration_changes
from cardiolens.score.statistics.hypothesis_tests import MARGIN
from cardiolens.storage.places import Run
from cardiolens.storage.run_word import open_run


def compare(first: Run, second: Run, margin: float) -> int:
    """Print the changes from the first run to the second; return 1 if a tier is shown to be worse, else 0."""
    for line in configuration_changes(first, second):
        say(f"configuration: {line}")
    comparisons = compare_runs(first, second)
    for comparison in comparisons:
        interval = (
            "no interval"
            if math.isnan(comparison.low)
            else f"{signed(comparison.low)} to {signed(comparison.high)}"
        )
        verdict = "worse" if comparison.worse(margin) else "not shown to be worse"
        say(
            f"{comparison.arm}, {comparison.scope.replace(':', ' ')}: {signed(comparison.value)} points "
            f"(95 % CI {interval}), {comparison.n_patients} patients, {comparison.n_items} items, "
            f"{comparison.gained} gained, {comparison.lost} lost: {verdict}"
        )
    worse = sum(comparison.worse(margin) for comparison in comparisons)
    say(f"{worse} of {len(comparisons)} shown to be worse by more than {margin:g} points")
    return 1 if worse else 0


class Words(Spec):
    """Words of the command."""

    a: GivenPath  # the folder of a run
    b: GivenPath
    margin: float = Field(MARGIN, ge=0, lt=100)  # points of score


def main() -> int:
    begin()
    try:
        words = read_words(Words, sys.argv[1:])
        return compare(open_run("a", words.a), open_run("b", words.b), words.margin)
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
