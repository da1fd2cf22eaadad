"""`python -m cardiolens.submit +experiment=... cluster=slurm`: run a sweep as jobs of a SLURM cluster.

One job prepares the studies, one job per model answers, and one job scores what was completed and writes the
page. `mode=plan` prints jobs and scripts without submitting. Repeating the command submits what is missing.
"""

from cardiolens.commands.command import Action, verb
from cardiolens.config.sweep import SweepSpec
from cardiolens.workflow.slurm.submission import submit

main = verb(__name__, __doc__, Action(SweepSpec, submit))
