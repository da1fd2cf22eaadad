"""`python -m cardiolens.prepare dataset=...`: read study folders into shards, if they changed."""

from cardiolens.commands.command import Action, verb
from cardiolens.config.sweep import SweepSpec
from cardiolens.workflow.steps.prepare_studies import prepare_dataset

main = verb(__name__, __doc__, Action(SweepSpec, prepare_dataset))
