"""What a planned question sends after its frames: one request, steps before the answer, or several samples.

Each class turns a `Draft` into the text after the frames, the room that replies need, and the chain of the
requests. Frames that the reader itself chooses are in `chosen_frames`.
"""

from dataclasses import dataclass
from functools import partial

from cardiolens.config.arms import Arm
from cardiolens.inference.plan.prompt_parts import FrameBlock, ReplyForm
from cardiolens.inference.plan.request import request_key
from cardiolens.protocol.dialogue.chain import Chain, Samples, Stage, Steps
from cardiolens.protocol.prompts.case_prompts import before_answer
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.prompts.template import Template, question_block
from cardiolens.protocol.tasks.legal import FREE


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


class Direct:
    """One request: the question after the frames."""

    n_before = 0  # requests besides the one whose row is planned

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.ending = draft.ending  # at its longest
        self.reply_tokens = draft.max_tokens  # of all replies that share a prompt

    @property
    def prompt(self) -> str:
        """The user message of the request's row."""
        return f"{self.draft.block.text}{self.ending}"

    def chain(self) -> Chain | None:
        """Return the chain that is asked in place of the one request."""
        return None

    def key(self, chain: Chain | None) -> str:
        """Return the request key; the parts of a chain also decide its last reply."""
        declared = tuple(stage.key for stage in chain.stages) if isinstance(chain, Steps | Samples) else ()
        return request_key(self.draft.block.state, self.ending, *self.draft.decoding, *declared)


class InSteps(Direct):
    """Free text about the same frames before the answer, repeated in its prompt."""

    def __init__(self, draft: Draft, n_images: int) -> None:
        super().__init__(draft)
        self._before, self.ending = before_answer(
            draft.arm.prompt.steps, draft.question, n_images, self.ending
        )
        self.n_before = len(self._before)
        self._step_tokens = draft.form.step_max_tokens(draft.arm.prompt)
        self.reply_tokens += self.n_before * self._step_tokens

    def chain(self) -> Chain:
        block, (_, _, *decoding) = self.draft.block, self.draft.decoding
        key = partial(request_key, block.state)
        steps = (
            Stage(
                f"{block.text}{ending}",
                self._step_tokens,
                key(ending, FREE.text, str(self._step_tokens), *decoding),
            )
            for ending in self._before
        )
        last = Stage(self.prompt, self.draft.max_tokens, key(self.ending, *self.draft.decoding))
        return Steps((*steps, last))


class Sampled(Direct):
    """Several replies to one request; keys do not depend on their number, so more samples reuse fewer."""

    def __init__(self, draft: Draft) -> None:
        super().__init__(draft)
        self.n_before = draft.arm.prompt.samples - 1

    def chain(self) -> Chain:
        prompt, model = self.draft.arm.prompt, self.draft.arm.model
        temperature, first = prompt.temperature, model.sampling.seed or 0
        assert temperature, "checked when the configuration was read"
        key = partial(request_key, self.draft.block.state, self.ending, *self.draft.decoding, "sample")
        return Samples(
            tuple(
                Stage(self.prompt, self.draft.max_tokens, key(str(temperature), str(seed)), seed, temperature)
                for seed in range(first, first + prompt.samples)
            )
        )
