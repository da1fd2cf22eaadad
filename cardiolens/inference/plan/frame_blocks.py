"""Blocks of a prompt that show frames, why a question is skipped, and the form of a reply."""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from cardiolens.config.arms import Arm
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import PromptSpec
from cardiolens.inference.models.token_counts import TokenCounter
from cardiolens.inference.plan.control import BLANK, FrameSelector
from cardiolens.inference.plan.planned_study import ExampleBlock, FrameBlock, PlannedQuestion, View
from cardiolens.inference.plan.request import hash_frames
from cardiolens.protocol.prompts.case_prompts import CaseText, Gold, case_block, lacking
from cardiolens.protocol.prompts.frames import caption_block, count_videos, frame_block, video_block
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.prompts.template import Closing
from cardiolens.protocol.select.selection import Selection
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.storage.schemas import FRAME, OVERFLOW, PLANNED

if TYPE_CHECKING:
    from hashlib import blake2b


_NEAR = 0.9  # of a model's limit; above, tokens are counted exactly


class FrameBlocks:
    """Words and counts for the requests of one model."""

    def __init__(
        self,
        spec: SweepSpec,
        model: ModelSpec,
        asked: "blake2b",
        frames: FrameSelector,
        counter: TokenCounter | None,
    ) -> None:
        self._spec = spec
        self._model = model
        self._frames = frames
        self._counter = counter  # None if nothing counts tokens, as for a simulated reader
        self._asked = asked  # hash of the request key, up to the frames

    def text(self, view: View, case_text: CaseText | None, gold: Gold) -> str:
        """Render the text before the question, with placeholders of frames."""
        frames, structure, level = view.selection.frames, view.study.structure, self._spec.caption
        if case_text is not None:
            return case_block(case_text, view.told or frames, gold, level, pictures=not view.told)
        if view.told:
            return caption_block(view.told, structure, level)
        return (video_block if view.as_video else frame_block)(frames, structure, level)

    def show(
        self, system: str, view: View, case_text: CaseText | None, gold: Gold, solved: ExampleBlock
    ) -> FrameBlock:
        """Return the block that shows a view; requests with the same frames and text share it."""
        study, blank = view.study, BLANK in view.selection.flags
        key = (system, view.selection.frames, view.as_video, view.told, blank, case_text, gold, solved)
        block = study.shown.get(key)
        if block is None:
            text = solved.text + self.text(view, case_text, gold)
            pictures = [*solved.pictures, *self._frames.pictures(view)]
            state = hash_frames(self._asked, system, text, tuple(key for key, _ in pictures))
            sizes = tuple(size for _, size in pictures)
            n_videos = count_videos(text) if view.as_video else 0
            block = self._counted(FrameBlock(system, text, state, sizes, n_videos=n_videos))
            study.shown[key] = block
        return block

    def _counted(self, block: FrameBlock) -> FrameBlock:
        """Add the token count that all requests with this block share."""
        frames, separator, rest = block.text.rpartition(FRAME)
        if self._counter is None or not separator:
            return block
        counted = self._counter.count_shown(block.system, frames, block.sizes, exact=False)
        return replace(block, rest=rest, counted=counted)

    def status(
        self,
        selection: Selection,
        block: FrameBlock,
        ending: str,
        max_tokens: int,
    ) -> tuple[str, int | None]:
        """Return the status (PLANNED, or why the request is not sent) and the prompt tokens if counted."""
        if selection.skipped is not None:
            return f"skipped: {selection.skipped}", None
        if self._counter is None:
            return PLANNED, None
        if block.counted is not None:
            before, tail = block.counted
            tokens = before + self._counter.count_asked(f"{block.rest}{ending}", tail)
        if block.counted is None or tokens + max_tokens > _NEAR * self._model.max_model_len:
            tokens = self._counter.count(block.system, f"{block.text}{ending}", block.sizes)
        return (OVERFLOW if tokens + max_tokens > self._model.max_model_len else PLANNED), tokens


def with_gold(view: View, case_text: CaseText | None, gold: Gold) -> View:
    """Return the view; skip the request if the setting needs text that the case does not have."""
    frames = view.told or view.selection.frames
    why = None if case_text is None else lacking(case_text, frames, gold)
    if why is None or view.selection.skipped is not None:
        return view
    return replace(view, selection=Selection((), view.selection.flags, why))


def with_examples(view: View, question: PlannedQuestion, arm: Arm, solved: ExampleBlock) -> View:
    """Return the view; skip the request if its prompt lacks the examples that it should show."""
    has_all = solved.examples or not arm.prompt.shots or question.asked.answer_type in OPEN
    if has_all or view.selection.skipped is not None:
        return view
    why = f"fewer than {arm.prompt.shots} solved examples of other patients"
    return replace(view, selection=Selection((), view.selection.flags, why))


def as_read(view: View, qa_id: str, arm: Arm, read: Collection[str] | None) -> View:
    """Return the view; skip the request if a person did not read the question, or not in this form.

    `read` are the questions that the person read; None for a model.
    """
    if read is None:
        return view
    changed = arm.control != "none" or arm.wording or arm.prompt.steps != "none"
    changed = changed or arm.selector.kind == "self" or arm.prompt.shots
    changed = changed or arm.prompt.cine == "video"
    if view.selection.skipped is not None or (qa_id in read and not changed):
        return view
    why = "not read in this form" if changed else "not read"
    return replace(view, selection=Selection((), view.selection.flags, why))


class ReplyForm:
    """The form of the replies of one model in a sweep."""

    def __init__(self, spec: SweepSpec, model: ModelSpec) -> None:
        self._spec = spec
        self._model = model

    @property
    def closing(self) -> Closing:
        """How the prompt says in which form to end."""
        return "json" if self._spec.answer_format == "json" else "letters"

    def format_of(self, question: AskedQuestion, prompt: PromptSpec) -> str:
        """Return the form of the reply: only legal letters if direct, a line of them if reasoned."""
        if question.answer_type in ("number", "ranking"):
            return "json" if self._spec.answer_format == "json" else "letters"
        if question.answer_type == "report" or self._spec.answer_format != "choice":
            return self._spec.answer_format if question.answer_type != "report" else "json"
        reasoned = "first_line" if question.letters_first else "last_line"
        return "choice" if prompt.style == "standard" else reasoned

    def max_tokens(self, question: AskedQuestion, prompt: PromptSpec) -> int:
        """Return the token limit of the reply: the model's for this prompt, else at least its style's.

        A model that thinks declares what a style needs (`standard: 4096`), or any other prompt
        of the style would cut its replies. Videos have the limit of the frames that they are compared with.
        """
        if question.answer_type == "report":
            return self._model.max_tokens.get("report", prompt.report_max_tokens)
        if prompt.name in self._model.max_tokens:
            return self._model.max_tokens[prompt.name]
        by_style = self._by_style(prompt)
        return by_style if by_style and prompt.cine == "video" else max(by_style, prompt.max_tokens)

    def step_max_tokens(self, prompt: PromptSpec) -> int:
        """Return the token limit of the reply to a step, at least the model's for the style of the prompt."""
        return max(self._by_style(prompt), prompt.step_max_tokens)

    def _by_style(self, prompt: PromptSpec) -> int:
        """Token limit that the model declares for prompts of this style; 0 if it declares none."""
        return self._model.max_tokens.get("standard" if prompt.style == "standard" else "reasoning", 0)
