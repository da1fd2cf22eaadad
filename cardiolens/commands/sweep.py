"""`python -m cardiolens.sweep +experiment=...`: ask models all questions, judge and score."""

from cardiolens.commands.command import Action, verb
from cardiolens.config.sweep import SweepSpec
from cardiolens.workflow.sweep import sweep

main = verb(__name__, __doc__, Action(SweepSpec, sweep))
