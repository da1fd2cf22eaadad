"""`python -m cardiolens.review questions=... studies=... out=... mode=...`: serve questions to people.

Each of `readers=` gets a link of their own; `export out=...` writes the result of the review. `audit run=...`
has a person read a sample of a run's replies, without our reading, and `report run=...` prints how often the
rules misread, by model, and what it could do to the scores.
"""

from cardiolens.commands.command import Action, verb
from cardiolens.curation.review.audit import Audit, audit, report
from cardiolens.curation.review.review_commands import Export, Serve, export, serve
from cardiolens.storage.places import RunWord

main = verb(
    __name__,
    __doc__,
    Action(Serve, serve),
    Action(Export, export, "export"),
    Action(Audit, audit, "audit"),
    Action(RunWord, report, "report"),
)
