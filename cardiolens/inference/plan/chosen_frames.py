"""Frames that a reader chooses: it asks for frames of the study by name, then answers the question."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cardiolens.base.digest import digest_of
from cardiolens.config.arms import Arm
from cardiolens.inference.plan.frame_views import FrameSelector, View
from cardiolens.inference.plan.request import hash_frames, request_key
from cardiolens.inference.plan.turns import Direct, Draft
from cardiolens.protocol.dialogue.chain import Chain, Choice, Offer
from cardiolens.protocol.prompts.frame_request_prompt import Turns, asking, listed, offered
from cardiolens.protocol.prompts.frames import CaptionLevel
from cardiolens.protocol.select.selection import Frame

if TYPE_CHECKING:
    from hashlib import blake2b

_LONGEST_NOTE = "x " * 250  # as long as the note to a reader that named frames which do not exist


def largest_frames(frames: FrameSelector, view: View, arm: Arm) -> tuple[Frame, ...]:
    """Return the frames that the reader may choose with the most pixels: tokens are counted for them."""

    def pixels(frame: Frame) -> int:
        height, width = frames.size(view.study, frame)
        return height * width

    return tuple(sorted(view.selection.frames, key=pixels, reverse=True)[: _budget(arm)])


class Choosing(Direct):
    """Requests for frames by name, before the question."""

    def __init__(
        self, draft: Draft, frames: FrameSelector, offer: View, level: CaptionLevel, model_state: "blake2b"
    ) -> None:
        super().__init__(draft)
        turns = Turns(_budget(draft.arm), draft.arm.selector.rounds)
        listing = listed(offer.selection.frames, offer.study.structure)
        words = asking(listing, draft.question, draft.template, draft.form.closing, turns)
        offered_frames, http = _offered(frames, offer, level), draft.arm.model.http
        state = hash_frames(model_state, draft.block.system, "", (offered_frames.key,))
        self._choice = Choice(
            offer=offered_frames,
            budget=turns.frames,
            rounds=turns.requests,
            first=words.first,
            further=words.further,
            answer_one=words.answer_one,
            answer_many=words.answer_many,
            ask_max_tokens=64 + 24 * turns.frames,  # a name has about 16 tokens
            max_tokens=draft.max_tokens,
            bound=http is None or http.dialect == "vllm",
            stage_key=request_key(state, "", *draft.decoding),
        )
        self.ending = f"{words.further}\n{words.answer_many}{_LONGEST_NOTE}"
        self.reply_tokens = max(draft.max_tokens, self._choice.ask_max_tokens)
        self.n_before = turns.requests

    @property
    def prompt(self) -> str:
        return self._choice.opening

    def chain(self) -> Chain:
        return self._choice

    def key(self, chain: Chain | None) -> str:
        choice = self._choice
        prompts = choice.first, choice.further, choice.answer_one, choice.answer_many
        declared = choice.stage_key, *prompts, *map(str, (choice.budget, choice.rounds, choice.bound))
        return request_key(self.draft.block.state, self.ending, *self.draft.decoding, *declared)


def _offered(frames: FrameSelector, view: View, level: CaptionLevel) -> Offer:
    """Return the offer of a view's frames, which questions on the study share."""
    selected: Sequence[Frame] = view.selection.frames
    key = "offer", selected, level
    if key not in view.study.shown:
        offer = offered(selected, view.study.structure, level)
        pictures = [frames.key(view.study, frame) for frame in selected]
        view.study.shown[key] = Offer(digest_of([list(map(list, offer)), pictures]), offer)
    offer_shown = view.study.shown[key]
    assert isinstance(offer_shown, Offer)
    return offer_shown


def _budget(arm: Arm) -> int:
    assert isinstance(arm.budget, int), "a token budget is refused for a reader that chooses its frames"
    return arm.budget
