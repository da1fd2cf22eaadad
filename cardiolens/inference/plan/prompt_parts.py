"""Parts of a prompt that requests share: the text and tokens of frames, and the form of a reply."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cardiolens.config.arms import Arm
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import PromptSpec
from cardiolens.inference.models.token_counts import TokenCounter
from cardiolens.inference.plan.frame_views import ArmFrames, View
from cardiolens.protocol.prompts.case_prompts import CaseText, Gold, case_block
from cardiolens.protocol.prompts.frames import CaptionLevel, caption_block, frame_block, video_block
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.prompts.template import Closing
from cardiolens.storage.schemas import FRAME, OVERFLOW, PLANNED

if TYPE_CHECKING:
    from hashlib import blake2b

_NEAR = 0.9  # of a model's limit; above, tokens are counted exactly


def arm_frames(arm: Arm) -> ArmFrames:
    """Return what decides which frames an arm shows."""
    return arm.selector, arm.seed, arm.budget


@dataclass(frozen=True, slots=True)
class FrameText:
    """Renders the text before a question, with placeholders of frames."""

    level: CaptionLevel

    def of(self, view: View, case: CaseText | None, gold: Gold) -> str:
        """Render the frames of a view, or a case with its images."""
        frames, structure = view.selection.frames, view.study.structure
        if case is not None:
            return case_block(case, view.frames, gold, self.level, pictures=not view.captioned)
        if view.captioned:
            return caption_block(view.captioned, structure, self.level)
        return (video_block if view.as_video else frame_block)(frames, structure, self.level)


@dataclass(frozen=True, slots=True)
class FrameBlock:
    """The part of a prompt that all requests with the same list of frames share."""

    system: str
    text: str
    state: "blake2b"  # hash of the request key, up to the question
    sizes: tuple[tuple[int, int], ...]  # (height, width) of the frames as rendered
    counted: tuple[int, str] | None = None  # tokens up to the last frame; template text after the question


class TokenLimit:
    """The limit of a model on the tokens of a prompt and its replies."""

    def __init__(self, model: ModelSpec, counter: TokenCounter | None) -> None:
        self._limit, self._counter = model.max_model_len, counter

    def counted(self, block: FrameBlock) -> FrameBlock:
        """Add the token count that all requests with this block share."""
        frames, separator, _ = block.text.rpartition(FRAME)
        if self._counter is None or not separator:
            return block
        return replace(
            block, counted=self._counter.count_shown(block.system, frames, block.sizes, exact=False)
        )

    def status(self, block: FrameBlock, ending: str, reply_tokens: int) -> tuple[str, int | None]:
        """Return PLANNED or OVERFLOW, and the tokens of the prompt if something counts them."""
        if self._counter is None:
            return PLANNED, None
        if block.counted is not None:
            before, tail = block.counted
            rest = block.text.rpartition(FRAME)[2]
            tokens = before + self._counter.count_asked(f"{rest}{ending}", tail)
        if block.counted is None or tokens + reply_tokens > _NEAR * self._limit:
            tokens = self._counter.count(block.system, f"{block.text}{ending}", block.sizes)
        return (OVERFLOW if tokens + reply_tokens > self._limit else PLANNED), tokens


class ReplyForm:
    """The form of the replies of one model in a sweep."""

    def __init__(self, spec: SweepSpec, model: ModelSpec) -> None:
        self._asked_for = spec.answer_format
        self._limits = model.max_tokens
        self.closing: Closing = "json" if spec.answer_format == "json" else "letters"

    def format_of(self, question: AskedQuestion, prompt: PromptSpec) -> str:
        """Return the form of the reply: only legal letters if direct, a line of them if reasoned."""
        if question.answer_type == "report":
            return "json"
        if question.answer_type in ("number", "ranking"):
            return self.closing
        if self._asked_for != "choice" or prompt.style == "standard":
            return self._asked_for
        return "first_line" if question.letters_first else "last_line"

    def max_tokens(self, question: AskedQuestion, prompt: PromptSpec) -> int:
        """Return the token limit of the reply: the model's for this prompt, else at least its style's.

        A model that thinks declares what a style needs (`standard: 4096`), or any other prompt
        of the style would cut its replies. Videos have the limit of the frames that they are compared with.
        """
        if question.answer_type == "report":
            return self._limits.get("report", prompt.report_max_tokens)
        if prompt.name in self._limits:
            return self._limits[prompt.name]
        by_style = self._by_style(prompt)
        return by_style if by_style and prompt.cine == "video" else max(by_style, prompt.max_tokens)

    def step_max_tokens(self, prompt: PromptSpec) -> int:
        """Return the token limit of the reply to a step, at least the model's for the style of the prompt."""
        return max(self._by_style(prompt), prompt.step_max_tokens)

    def _by_style(self, prompt: PromptSpec) -> int:
        """Token limit that the model declares for prompts of this style; 0 if it declares none."""
        return self._limits.get("standard" if prompt.style == "standard" else "reasoning", 0)
