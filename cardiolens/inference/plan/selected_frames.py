"""Select the frames that a request shows, and change them as the control of its arm demands."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

from cardiolens.base.entry_points import is_word
from cardiolens.config.arms import Arm
from cardiolens.config.sweep import Budget, SelectorSpec
from cardiolens.inference.models.rendering import Rendering, frame_key
from cardiolens.inference.models.token_counts import TokenCounter
from cardiolens.inference.plan.control import BLANK, SHOWN, blank_digest
from cardiolens.inference.plan.control_plugin import changed_selection
from cardiolens.inference.plan.planned_question import PlannedQuestion
from cardiolens.inference.plan.planned_study import Picture, PlannedStudy, StudyFrames, View
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.selection import Frame, Selection
from cardiolens.protocol.select.token_budget import fitting
from cardiolens.study.shards import FrameDigest

_OPEN = 2  # studies kept open, of some megabytes each
_DONORS = 256  # studies kept open that show for many others: control other_patient, examples


class FrameSelector:
    """Selects frames for the requests of one model; `lends` if studies show for many others."""

    def __init__(self, rendering: Rendering, counter: TokenCounter | None, *, lends: bool) -> None:
        self._rendering = rendering
        self._counter = counter  # None if nothing counts tokens, as for a simulated reader
        self.study = lru_cache(maxsize=_DONORS if lends else _OPEN)(self._open)

    def _open(self, frames_of: Callable[[str], StudyFrames], study_id: str) -> PlannedStudy:
        frames = frames_of(study_id)
        return PlannedStudy(frames.structure, self._rendered(frames.digests), frames.features, frames.digests)

    def view(
        self, question: PlannedQuestion, arm: Arm, own_view: View, frames_of: Callable[[str], StudyFrames]
    ) -> View:
        """Return the frames to show under the arm's control; by default those of the question's own study."""
        selection = own_view.selection
        if is_word(arm.control):
            changed = changed_selection(arm.control, selection, own_view.study.structure)
            return replace(own_view, selection=changed)
        if arm.control in SHOWN:
            nothing = replace(selection, frames=(), flags=())
            told_frames = selection.frames if arm.control == "captions" else ()
            return replace(own_view, study_id=None, selection=nothing, told=told_frames)
        if arm.control == "blank":
            return replace(own_view, selection=replace(selection, flags=(*selection.flags, BLANK)))
        if arm.control != "other_patient":
            return own_view
        if question.donor is None:
            why = selection.skipped or "no other patient with the same views"
            return replace(own_view, selection=Selection((), selection.flags, why))
        donor = self.study(frames_of, question.donor)
        shown = self.select(donor, question, arm.selector, arm.seed, arm.budget)
        return View(question.donor, donor, shown, own_view.as_video)

    def select(
        self,
        study: PlannedStudy,
        question: PlannedQuestion,
        selector: SelectorSpec,
        seed: int | None,
        budget: Budget,
    ) -> Selection:
        """Select the frames of a study for a question, by number or by tokens."""
        features, words = study.features.get(selector.encoder), question.asked.question

        def at(n_frames: int) -> Selection:
            return choose(
                selector, seed, study.structure, question.route, n_frames, features=features, question=words
            )

        def tokens_of(frame: Frame) -> int:
            assert self._counter is not None, "a token budget is refused for a reader without tokens"
            return self._counter.image_tokens(study.pictures[frame.volume_id, frame.idx][1])

        if isinstance(budget, int):
            return at(budget)
        return fitting(at, tokens_of, budget.tokens, available=len(study.pictures))

    def _rendered(self, digests: Mapping[tuple[str, int], FrameDigest]) -> dict[tuple[str, int], Picture]:
        rendering = self._rendering.digest
        return {
            place: (frame_key(digest, rendering), self._rendering.size(height, width))
            for place, (digest, height, width) in digests.items()
        }

    def pictures(self, view: View) -> list[Picture]:
        """Return the frames of a view in the order shown; black ones under control blank."""
        study, blank = view.study, BLANK in view.selection.flags
        places = [(frame.volume_id, frame.idx) for frame in view.selection.frames]
        return [self._blank(study, place) if blank else study.pictures[place] for place in places]

    def _blank(self, study: PlannedStudy, place: tuple[str, int]) -> Picture:
        key = frame_key(blank_digest(study.digests[place].digest), self._rendering.digest)
        return key, study.pictures[place][1]
