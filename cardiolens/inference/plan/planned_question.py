"""A question as the plan needs it, in any of its wordings."""

from dataclasses import dataclass, replace

from cardiolens.protocol.medthinkvqa.case_text import CaseText
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.select.route import Route


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """A question as the plan needs it: words, route and study, but no answer."""

    qa_id: str
    study_id: str
    asked: AskedQuestion
    route: Route
    donor: str | None = None  # the study whose frames stand in for its own under control other_patient
    wordings: tuple[str, ...] = ()  # other words for the same question
    told: CaseText | None = None  # of a case of images and text: what its prompts may tell

    def worded(self, wording: int) -> AskedQuestion:
        """The question in one of its wordings; 0 is its own."""
        return replace(self.asked, question=self.wordings[wording - 1]) if wording else self.asked
