"""What a planned question sends after its frames: one request, or a chain.

A chain has steps before the answer, several samples, or requests for frames by name. Each function turns a
`Draft` into `Turns`: the text after the frames, the room that replies need, and the chain of the requests.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cardiolens.base.digest import digest_of
from cardiolens.config.arms import Arm
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import PromptSpec
from cardiolens.inference.plan.frame_views import FrameSelector, View
from cardiolens.inference.plan.request import hash_frames, request_key
from cardiolens.protocol.dialogue.chain import Chain, Choice, Offer, Samples, Stage, Steps
from cardiolens.protocol.prompts.case_prompts import before_answer
from cardiolens.protocol.prompts.frame_request_prompt import asking, listed, offered
from cardiolens.protocol.prompts.frames import CaptionLevel
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.prompts.template import Closing, Template, question_block
from cardiolens.protocol.tasks.legal import FREE

if TYPE_CHECKING:
    from hashlib import blake2b

FRAME_REQUESTS = 2  # most requests for frames before the answer of a reader that chooses them
_REPORT_TOKENS = 2048  # limit of a reply that is a report
_STEP_TOKENS = {"self": 512, "discussion": 1536}  # limit of the reply to a step
_SAMPLE_TEMPERATURE = 0.7  # of several samples of a model that has none of its own
_LONGEST_NOTE = "x " * 250  # as long as the note to a reader that named frames which do not exist


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
            return self._limits.get("report", _REPORT_TOKENS)
        if prompt.name in self._limits:
            return self._limits[prompt.name]
        by_style = self._by_style(prompt)
        return by_style if by_style and prompt.cine == "video" else max(by_style, prompt.max_tokens)

    def step_max_tokens(self, prompt: PromptSpec) -> int:
        """Return the token limit of the reply to a step: the model's for steps, else at least its style's."""
        return self._limits.get("step", max(self._by_style(prompt), _STEP_TOKENS[prompt.steps]))

    def _by_style(self, prompt: PromptSpec) -> int:
        """Token limit that the model declares for prompts of this style; 0 if it declares none."""
        return self._limits.get("standard" if prompt.style == "standard" else "reasoning", 0)


@dataclass(frozen=True, slots=True)
class FrameBlock:
    """The part of a prompt that all requests with the same list of frames share."""

    system: str
    text: str
    state: "blake2b"  # hash of the request key, up to the question
    sizes: tuple[tuple[int, int], ...]  # (height, width) of the frames as rendered
    counted: tuple[int, str] | None = None  # tokens up to the last frame; template text after the question


@dataclass(frozen=True, slots=True)
class Draft:
    """One question under one arm, and the part of its prompt that shows frames."""

    question: AskedQuestion  # as displayed
    arm: Arm
    template: Template
    form: ReplyForm
    block: FrameBlock
    n_frames: int  # that the text after them speaks of
    decoding: tuple[str, ...]  # what decides the reply besides the prompt; its first entry: legal replies

    @property
    def max_tokens(self) -> int:
        """The token limit of the answer."""
        return self.form.max_tokens(self.question, self.arm.prompt)

    @property
    def ending(self) -> str:
        """The text after the frames that asks for the answer alone."""
        return question_block(self.question, self.n_frames, self.template, self.form.closing)


@dataclass(frozen=True, slots=True)
class Turns:
    """What is sent after the frames."""

    ending: str  # text after the frames, at its longest
    prompt: str  # the user message of the request's row
    reply_tokens: int  # of all replies that share a prompt
    chain: Chain | None = None  # asked in place of the one request
    n_before: int = 0  # requests besides the one whose row is planned
    declared: tuple[str, ...] = ()  # parts of a chain that decide its last reply, for the request key


def direct(draft: Draft) -> Turns:
    """One request: the question after the frames."""
    ending = draft.ending
    return Turns(ending, f"{draft.block.text}{ending}", draft.max_tokens)


def in_steps(draft: Draft, n_images: int) -> Turns:
    """Free text about the same frames before the answer, repeated in its prompt."""
    prompt, text = draft.arm.prompt, draft.block.text
    before, ending = before_answer(prompt.steps, draft.question, n_images, draft.ending)
    limit, (_, _, *decoding) = draft.form.step_max_tokens(prompt), draft.decoding
    key = partial(request_key, draft.block.state)
    steps = [Stage(f"{text}{step}", limit, key(step, FREE.text, str(limit), *decoding)) for step in before]
    last = Stage(f"{text}{ending}", draft.max_tokens, key(ending, *draft.decoding))
    return Turns(
        ending,
        last.prompt,
        draft.max_tokens + len(steps) * limit,
        Steps((*steps, last)),
        len(steps),
        tuple(stage.key for stage in (*steps, last)),
    )


def sampled(draft: Draft) -> Turns:
    """Several replies to one request; keys do not depend on their number, so more samples reuse fewer."""
    once, prompt, sampling = direct(draft), draft.arm.prompt, draft.arm.model.sampling
    first, temperature = sampling.seed or 0, sampling.temperature or _SAMPLE_TEMPERATURE
    key = partial(request_key, draft.block.state, once.ending, *draft.decoding, "sample")
    stages = tuple(
        Stage(
            once.prompt,
            draft.max_tokens,
            key(str(temperature), str(seed)),
            seed,
            temperature,
        )
        for seed in range(first, first + prompt.samples)
    )
    keys = tuple(stage.key for stage in stages)
    return Turns(once.ending, once.prompt, once.reply_tokens, Samples(stages), prompt.samples - 1, keys)


def choosing(
    draft: Draft, frames: FrameSelector, view: View, level: CaptionLevel, model_state: "blake2b"
) -> Turns:
    """Requests for frames of a view by name, before the question."""
    arm, http = draft.arm, draft.arm.model.http
    assert isinstance(arm.budget, int), "a token budget is refused for a reader that chooses its frames"
    listing = listed(view.selection.frames, view.study.structure)
    closing, limits = draft.form.closing, (arm.budget, FRAME_REQUESTS)
    words = asking(listing, draft.question, draft.template, closing, limits)
    offer = _offered(frames, view, level)
    state = hash_frames(model_state, draft.block.system, "", (offer.key,))
    choice = Choice(
        offer=offer,
        budget=arm.budget,
        rounds=FRAME_REQUESTS,
        first=words.first,
        further=words.further,
        answer_one=words.answer_one,
        answer_many=words.answer_many,
        ask_max_tokens=64 + 24 * arm.budget,  # a name has about 16 tokens
        max_tokens=draft.max_tokens,
        bound=http is None or http.dialect == "vllm",
        stage_key=request_key(state, "", *draft.decoding),
    )
    decided = map(str, (choice.budget, choice.rounds, choice.bound))
    return Turns(
        f"{words.further}\n{words.answer_many}{_LONGEST_NOTE}",
        choice.opening,
        max(draft.max_tokens, choice.ask_max_tokens),
        choice,
        choice.rounds,
        (choice.stage_key, *words, *decided),
    )


def _offered(frames: FrameSelector, view: View, level: CaptionLevel) -> Offer:
    """Return the offer of a view's frames, which questions on the study share."""
    selected = view.selection.frames
    key = "offer", selected, level
    if key not in view.study.shown:
        offer = offered(selected, view.study.structure, level)
        pictures = [frames.key(view.study, frame) for frame in selected]
        view.study.shown[key] = Offer(digest_of([list(map(list, offer)), pictures]), offer)
    shared = view.study.shown[key]
    assert isinstance(shared, Offer)
    return shared
