"""The frames that requests of one model show: of the question's study, or of another one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from cardiolens.base.entry_points import is_word
from cardiolens.config.arms import Arm
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep_factors import Budget, SelectorSpec
from cardiolens.inference.models.token_counts import Rendering, TokenCounter, fault_of, frame_key
from cardiolens.inference.plan.control import BLANK, SHOWN, blank_digest, changed_selection
from cardiolens.inference.plan.request import PlannedQuestion
from cardiolens.protocol.prompts.case_prompts import CaseText, Gold, case_block
from cardiolens.protocol.prompts.frames import CaptionLevel, caption_block, frame_block, video_block
from cardiolens.protocol.select.choose import choose, fitting
from cardiolens.protocol.select.feature_store import StudyFeatures
from cardiolens.protocol.select.selection import Frame, Selection
from cardiolens.study.shards import FrameDigest
from cardiolens.study.structure import StudyStructure

Picture = tuple[str, tuple[int, int]]
"""Frame key; height and width as rendered."""

ArmFrames = tuple[SelectorSpec, int | None, Budget]
"""What decides which frames an arm shows: selector, its seed, budget."""

_OPEN = 2  # studies kept open, of some megabytes each
_LENDERS = 256  # studies kept open that show for many others: control other_patient, examples


@dataclass(frozen=True, slots=True)
class StudyFrames:
    """The frames of a study: structure, digests, and features if a selector needs them."""

    structure: StudyStructure
    digests: Mapping[tuple[str, int], FrameDigest]  # by volume_id, idx
    features: StudyFeatures | None = None
    shown: dict[object, object] = field(default_factory=dict)  # what requests with equal frames share


@dataclass(frozen=True, slots=True)
class View:
    """The frames that one request shows, and their study."""

    study_id: str | None  # None for a request that shows no frames
    study: StudyFrames
    selection: Selection
    as_video: bool = False  # whether phases of a slice are shown as a video
    captioned: tuple[Frame, ...] = ()  # frames shown by their captions alone

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames that the prompt shows or describes."""
        return self.captioned or self.selection.frames

    def skipped(self, why: str) -> "View":
        """Return the view of a request that is not sent."""
        return replace(self, selection=Selection((), self.selection.flags, why))

    def text(self, level: CaptionLevel, case: CaseText | None = None, gold: Gold = "none") -> str:
        """Render the frames, with placeholders, or a case with its images."""
        structure = self.study.structure
        if case is not None:
            return case_block(case, self.frames, gold, level, pictures=not self.captioned)
        if self.captioned:
            return caption_block(self.captioned, structure, level)
        return (video_block if self.as_video else frame_block)(self.selection.frames, structure, level)


def arm_frames(arm: Arm) -> ArmFrames:
    """Return what decides which frames an arm shows."""
    return arm.selector, arm.seed, arm.budget


class FrameSelector:
    """Selects frames for the requests of one model; `lends` if studies show for many others."""

    def __init__(
        self,
        model: ModelSpec,
        counter: TokenCounter | None,  # None if nothing counts tokens, as for a simulated reader
        open_study: Callable[[str], StudyFrames],
        *,
        lends: bool,
    ) -> None:
        self._model, self._counter, self._rendering = model.name, counter, Rendering(model.long_side)
        self._digest = self._rendering.digest
        self._study = lru_cache(maxsize=_LENDERS if lends else _OPEN)(open_study)

    def own_view(self, study_id: str, question: PlannedQuestion, shown_by: ArmFrames) -> View:
        """Return what an arm shows of a study for a question, without controls: by number or by tokens."""
        study, (selector, seed, budget) = self._study(study_id), shown_by

        def at(n_frames: int) -> Selection:
            return choose(
                selector,
                seed,
                study.structure,
                question.route,
                n_frames,
                features=study.features,
                question=question.asked.question,
            )

        def tokens_of(frame: Frame) -> int:
            assert self._counter is not None, "a token budget is refused for a reader without tokens"
            with fault_of(self._model):
                return self._counter.image_tokens(self.size(study, frame))

        if isinstance(budget, int):
            return View(study_id, study, at(budget))
        return View(study_id, study, fitting(at, tokens_of, budget.tokens, available=len(study.digests)))

    def view(self, question: PlannedQuestion, arm: Arm, own_view: View) -> View:
        """Return the frames that an arm shows under its control; by default those of the own study."""
        control, view = arm.control, replace(own_view, as_video=arm.prompt.cine == "video")
        selection = view.selection
        if is_word(control):
            return replace(view, selection=changed_selection(control, selection, view.study.structure))
        if control in SHOWN:
            captioned = selection.frames if control == "captions" else ()
            nothing = replace(selection, frames=(), flags=())
            return replace(view, study_id=None, selection=nothing, captioned=captioned)
        if control == "blank":
            return replace(view, selection=replace(selection, flags=(*selection.flags, BLANK)))
        if control != "other_patient":
            return view
        if question.donor is None:
            return view.skipped(selection.skipped or "no other patient with the same views")
        return replace(self.own_view(question.donor, question, arm_frames(arm)), as_video=view.as_video)

    def pictures(self, view: View) -> list[Picture]:
        """Return the frames of a view in the order shown; black ones under control blank."""
        blank = BLANK in view.selection.flags
        return [
            (self.key(view.study, frame, blank=blank), self.size(view.study, frame))
            for frame in view.selection.frames
        ]

    def size(self, study: StudyFrames, frame: Frame) -> tuple[int, int]:
        """Return height and width of a frame as rendered."""
        _, height, width = study.digests[frame.volume_id, frame.idx]
        return self._rendering.size(height, width)

    def key(self, study: StudyFrames, frame: Frame, *, blank: bool = False) -> str:
        """Return the key of a frame, or of the black one in its place."""
        digest = study.digests[frame.volume_id, frame.idx].digest
        return frame_key(blank_digest(digest) if blank else digest, self._digest)
