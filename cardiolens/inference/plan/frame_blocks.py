"""Word the part of a prompt before the question, and count the tokens of the whole."""

from dataclasses import replace
from typing import TYPE_CHECKING

from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.token_counts import TokenCounter
from cardiolens.inference.plan.control import BLANK
from cardiolens.inference.plan.keys import hash_frames
from cardiolens.inference.plan.planned_study import ExampleBlock, FrameBlock, View
from cardiolens.inference.plan.selected_frames import FrameSelector
from cardiolens.protocol.prompts.case_block import case_block
from cardiolens.protocol.prompts.case_text import CaseText, Gold
from cardiolens.protocol.prompts.frames import caption_block, frame_block
from cardiolens.protocol.prompts.videos import count_videos, video_block
from cardiolens.protocol.select.selection import Selection
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
