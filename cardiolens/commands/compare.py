"""`python -m cardiolens.compare a=outputs/... b=outputs/...`: show the changes of scores from run a to run b.

Arms are matched by model, selection, budget, prompt and control. The exit code is a gate: 1 if some arm is
shown to score lower in b by more than `margin` points (default 2) on some tier, 0 if no arm is, 2 if the runs
cannot be compared.

`python -m cardiolens.compare runs=[outputs/...,outputs/...] out=x.html`: the models of all runs, ranked on
one page. Runs of other questions, words or studies are refused.
"""

import math
from typing import Annotated

from pydantic import Field

from cardiolens.base.console import say
from cardiolens.base.phrasing import counted
from cardiolens.commands.command import Action, verb
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import Listed
from cardiolens.score.claims.sentences import signed
from cardiolens.score.run_results.merging import check_templates, merged_run
from cardiolens.score.run_results.run_comparison import compare_runs, configuration_changes
from cardiolens.score.statistics.hypothesis_tests import MARGIN
from cardiolens.show.leaderboard.leaderboard_page import write_leaderboard
from cardiolens.show.page.page_data import read_facts
from cardiolens.storage import documents
from cardiolens.storage.places import Run, open_run, open_runs
from cardiolens.workflow.steps.judge_run import joined, judge_together


def compare(first: Run, second: Run, margin: float) -> int:
    """Print the changes from the first run to the second; return 1 if a tier is shown to be worse, else 0."""
    for line in configuration_changes(first, second):
        say(f"configuration: {line}")
    comparisons = compare_runs(first, second)
    for comparison in comparisons:
        interval = (
            "no interval to rely on"
            if math.isnan(comparison.low)
            else f"95 % CI {signed(comparison.low)} to {signed(comparison.high)}"
        )
        verdict = "worse" if comparison.worse(margin) else "not shown to be worse"
        say(
            f"{comparison.arm}, {comparison.scope.replace(':', ' ')}: {signed(comparison.value)} points "
            f"({interval}), {counted(comparison.n_patients, 'patient')}, "
            f"{counted(comparison.n_items, 'item')}, "
            f"{comparison.gained} gained, {comparison.lost} lost: {verdict}"
        )
    worse = sum(comparison.worse(margin) for comparison in comparisons)
    say(f"{worse} of {len(comparisons)} shown to be worse by more than {margin:g} points")
    return 1 if worse else 0


class Words(Spec):
    """Words of the command."""

    a: GivenPath  # the folder of a run
    b: GivenPath  # the folder of the run that is compared with it
    margin: float = Field(MARGIN, ge=0, lt=100)  # points by which a tier must be lower to count as worse
    store: GivenPath | None = None  # where the store of run a is now


class Board(Spec):
    """Words of a leaderboard."""

    runs: Annotated[tuple[GivenPath, ...], Listed] = Field(min_length=1)  # runs whose models are ranked
    out: GivenPath  # the HTML file
    store: GivenPath | None = None  # where the store of the runs is now


def leaderboard(words: Board) -> int:
    """Write the leaderboard of several runs, judged as one; return 1 if requests lack an answer, else 0."""
    runs = open_runs(words.runs, words.store)
    check_templates(runs, [documents.read_manifest(run) for run in runs])
    # Judged anew: the folder of an earlier joint judgement may hold what the runs were then.
    unfinished = len(runs) > 1 and judge_together(runs) != 0
    facts = read_facts(merged_run(runs) if len(runs) > 1 else joined(runs), runs)
    write_leaderboard(words.out, facts)
    say(f"leaderboard: {words.out}")
    return 1 if unfinished or facts.is_unfinished else 0


def _compare(words: Words) -> int:
    return compare(open_run("a", words.a, words.store), open_run("b", words.b), words.margin)


main = verb(__name__, __doc__, Action(Words, _compare), Action(Board, leaderboard, "a leaderboard"))
