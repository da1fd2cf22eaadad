"""The answering step: missing requests of placed models to completions, watched by terminal and tracker."""

from collections.abc import Mapping
from functools import partial

from cardiolens.placement.placement import Placement
from cardiolens.plan.missing import Missing
from cardiolens.plan.plan import Plan
from cardiolens.stream.execution import Executed, execute
from cardiolens.stream.standing import begin_watches
from cardiolens.terminal import bars
from cardiolens.tracker.live import watching


def answer(plan: Plan, placement: Placement, missing: Mapping[str, Missing]) -> Executed:
    """Run every placed model while the terminal and Weights & Biases see how far each one is."""
    with watching(plan) as mirror, bars.shown() as terminal:
        return execute(plan, placement, missing, partial(begin_watches, (terminal, mirror)))
