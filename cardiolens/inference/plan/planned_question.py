"""A question as the plan sees it, in any of its wordings."""

from dataclasses import dataclass, replace

from cardiolens.protocol.medthinkvqa.case_text import CaseText
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.select.route import Route


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """A question as the plan sees it: words, route and study, but no answer."""

    qa_id: str
    study_id: str
    asked: AskedQuestion
    route: Route
    donor: str | None = None  # the study whose frames are shown under control other_patient
    wordings: tuple[str, ...] = ()  # alternative wordings of the question
    told: CaseText | None = None  # text that prompts may include, for a case of images and text

    def worded(self, wording: int) -> AskedQuestion:
        """Return the question in one of its wordings; 0 is the original."""
        return replace(self.asked, question=self.wordings[wording - 1]) if wording else self.asked
