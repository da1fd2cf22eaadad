"""`python -m cardiolens.status run=outputs/...`: show the progress of each model, from the disk and SLURM.

Without SLURM, or after its jobs have ended, the status comes from the disk alone.
"""

from cardiolens.commands.command import Action, verb
from cardiolens.storage.places import RunWord
from cardiolens.workflow.slurm.run_status import status

main = verb(__name__, __doc__, Action(RunWord, lambda words: status(words.open())))
