"""The answer step: complete missing requests, with progress on the terminal and in Weights & Biases."""

from collections.abc import Mapping
from functools import partial

from cardiolens.inference.placement.placement import Placement
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.stream.execution import Executed, execute
from cardiolens.inference.stream.progress import begin_watches
from cardiolens.show.terminal import bars
from cardiolens.show.tracker.tracked_progress import watching


def answer(plan: Plan, placement: Placement, missing: Mapping[str, Missing]) -> Executed:
    """Run every placed model, and report progress to the terminal and Weights & Biases."""
    with watching(plan) as mirror, bars.progress_display() as terminal:
        return execute(plan, placement, missing, partial(begin_watches, (terminal, mirror)))
