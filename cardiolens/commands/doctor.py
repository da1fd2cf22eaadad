"""`python -m cardiolens.doctor +experiment=...`: look for what the sweep will need on this machine.

Prints one line for each check that sweep and submit make: `ok`, or `FIX` with the remedy. Exit code 1 if one
is to fix.
"""

from cardiolens.commands.command import Action, verb
from cardiolens.config.sweep import SweepSpec
from cardiolens.workflow.examination import examine

main = verb(__name__, __doc__, Action(SweepSpec, examine))
