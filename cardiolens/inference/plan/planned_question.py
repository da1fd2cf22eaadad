"""A question as the plan sees it, in any of its wordings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from cardiolens.protocol.prompts.case_text import CaseText
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
    suggestions: Mapping[str, str] = field(default_factory=dict, hash=False)  # option by leading control
    told: CaseText | None = None  # text that prompts may include, for a case of images and text
    # solved questions that may be shown before it, by the seed that put them in order
    examples: Mapping[int, tuple["SolvedExample", ...]] = field(default_factory=dict, hash=False)

    @property
    def further_studies(self) -> Iterator[str]:
        """The other studies whose frames the question may show."""
        if self.donor is not None:
            yield self.donor
        for examples in self.examples.values():
            yield from (example.question.study_id for example in examples)

    def worded(self, wording: int) -> AskedQuestion:
        """Return the question in one of its wordings; 0 is the original."""
        return replace(self.asked, question=self.wordings[wording - 1]) if wording else self.asked


@dataclass(frozen=True, slots=True)
class SolvedExample:
    """A question of another patient with its answer, the only answers that a plan holds."""

    question: PlannedQuestion
    answer: tuple[str, ...]  # original option keys
