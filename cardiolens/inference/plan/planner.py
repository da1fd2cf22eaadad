"""Plan the requests of one model on the studies of one part: every question under every arm."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import Arm
from cardiolens.inference.models.chat import TokenCounter
from cardiolens.inference.models.identity import Identity, readings_of
from cardiolens.inference.models.token_counts import fault_of
from cardiolens.inference.plan.few_shot import FLAG as SHOTS_FLAG
from cardiolens.inference.plan.few_shot import Examples, FewShot
from cardiolens.inference.plan.frame_views import (
    BLANK,
    SHOWN,
    FrameSelector,
    StudyFrames,
    View,
    as_displayed,
)
from cardiolens.inference.plan.request import (
    PlannedQuestion,
    ReplyForm,
    Request,
    hash_model,
    hash_of,
    request_key,
)
from cardiolens.protocol.dialogue.chain import Chain, Choice, Offer, Samples, Stage, Steps
from cardiolens.protocol.prompts.case_prompts import lacking, steps_before
from cardiolens.protocol.prompts.frame_request_prompt import choice_of, offer_of
from cardiolens.protocol.prompts.frames import FLAG as VIDEO_FLAG
from cardiolens.protocol.prompts.frames import count_videos
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.prompts.template import (
    Style,
    Template,
    question_block,
    template_folders,
    template_for,
)
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.protocol.tasks.legal import FREE, constraint_of
from cardiolens.protocol.tasks.questions import LESION, is_twin
from cardiolens.storage.schemas import OVERFLOW, PLANNED

if TYPE_CHECKING:
    from hashlib import blake2b

ESTIMATED = "estimated_tokens"  # flag of a request whose tokens are estimated, not counted by a processor
_SAMPLE_TEMPERATURE = 0.7  # of several samples of a model that has none of its own
_LONGEST_NOTE = "x " * 250  # as long as the note to a reader that named frames which do not exist


class FrameBlock(NamedTuple):
    """The part of a prompt that all requests with the same list of frames share."""

    system: str
    text: str
    state: "blake2b"  # hash of the request key, up to the question
    sizes: tuple[tuple[int, int], ...]  # (height, width) of the frames as rendered

    def ask(self, ending: str, max_tokens: int, *decoding: str) -> Stage:
        """Return the request that goes on with a text; `decoding` decides the reply besides the prompt."""
        return Stage(f"{self.text}{ending}", max_tokens, request_key(self.state, ending, *decoding))


class ModelPlanner:
    """Plans the requests of one model study by study, so that memory does not grow with the cohort.

    `frames_of` opens a study: the question's own, or one that lends frames or examples.
    """

    def __init__(
        self,
        spec: SweepSpec,
        model: ModelSpec,
        identity: Identity,
        arms: Sequence[Arm],
        counter: TokenCounter | None,
        *,
        frames_of: Callable[[str], StudyFrames],
    ) -> None:
        self._level, self._model, self._counter = spec.caption, model, counter
        self._arms = [(arm, arm.arm_id) for arm in arms]
        self._templates = cache(partial(template_folders, spec.templates))
        self._state = hash_model(identity.model_key, model.sampling)
        self._read = readings_of(model).keys() if model.answers_from == "readings" else None
        lends = any(arm.control == "other_patient" or arm.prompt.shots for arm in arms)
        self._frames = FrameSelector(model, counter, frames_of, lends=lends)
        self._form = ReplyForm(spec, model)
        self._few_shot = FewShot(self._frames, spec.caption, self._form, self._templates)

    def requests(self, questions: Iterable[PlannedQuestion]) -> Iterator[Request]:
        """Yield the requests of questions, those on the same study one after another, for each arm."""
        for question in questions:
            asks_of_twin = is_twin(question.study_id)
            for arm, arm_id in self._arms:
                if (arm.control == LESION) == asks_of_twin:
                    yield self._request(question, arm, arm_id)

    def _request(self, question: PlannedQuestion, arm: Arm, arm_id: str) -> Request:
        """Plan one question under one arm; only a request that is sent has its chain and examples."""
        view = self._frames.view(question, arm)
        examples = self._few_shot.before(question, arm, arm_id)
        if view.selection.skipped is None and (why := self._why_skipped(question, arm, view, examples)):
            view = view.skipped(why)
        selection, chooses = view.selection, arm.selector.kind == "self" and view.selection.skipped is None
        displayed, template = self._displayed(question, arm)
        counted = self._largest(view, _most_frames(arm)) if chooses else view
        block = self._block(template.system, counted, question, arm, examples)
        answer_format = self._form.format_of(displayed, arm.prompt)
        max_tokens = self._form.max_tokens(displayed, arm.prompt)
        options = displayed.answer_type, displayed.keys, displayed.exclusive
        legal = constraint_of(answer_format, *options).text
        # Arms share equal requests, but for readers that look at the truth or sample without a seed.
        shares = self._model.determined or _is_sampled(displayed, arm)
        of_item = () if shares and not self._model.told_questions else (arm_id, question.qa_id)
        decoding = (legal, str(max_tokens), str(int(arm.control == "repeat")), *of_item)
        chain: Chain | None
        if chooses:
            ending, chain, reply_tokens = self._choice(arm, view, template, displayed, decoding=decoding)
        else:
            ending = question_block(displayed, len(view.frames), template, self._form.closing)
            ending, chain, reply_tokens = self._chain(arm, view, block, displayed, ending, decoding=decoding)
        status, tokens = f"skipped: {selection.skipped}", None
        if selection.skipped is None:
            status, tokens = self._status(block, ending, reply_tokens)
        sent = status == PLANNED
        declared = chain.declared if chain and (sent or chooses) else ()
        n_videos = count_videos(block.text) if view.as_video else 0
        return Request(
            arm_id=arm_id,
            qa_id=question.qa_id,
            study_id=question.study_id,
            frames_study_id=view.study_id,
            subtask=displayed.subtask,
            frames=() if chooses else selection.frames,
            system=block.system,
            prompt=chain.opening if isinstance(chain, Choice) else f"{block.text}{ending}",
            template=template.name,
            answer_format=answer_format,
            answer_type=displayed.answer_type,
            option_keys=displayed.keys,
            exclusive=displayed.exclusive,
            max_tokens=max_tokens,
            stage=chain.most_stages - 1 if chain else 0,
            replicate=int(arm.control == "repeat"),
            flags=(
                *selection.flags,
                *([ESTIMATED] if self._model.estimates_tokens else []),
                *([f"{SHOTS_FLAG}{len(examples.shown)}"] if examples.shown else []),
                *([f"{VIDEO_FLAG}{n_videos}"] if n_videos else []),
            ),
            status=status,
            predicted_tokens=tokens,
            request_key=request_key(block.state, ending, *decoding, *declared),
            chain=chain if sent else None,
            examples=examples.shown if sent else (),
        )

    def _why_skipped(self, question: PlannedQuestion, arm: Arm, view: View, examples: Examples) -> str | None:
        """Return why a request is not sent although its frames were selected; None if it is sent."""
        prompt = arm.prompt
        if prompt.shots and not examples.shown and question.asked.answer_type not in OPEN:
            return f"fewer than {prompt.shots} solved examples of other patients"
        if question.case is not None and (why := lacking(question.case, view.frames, prompt.gold)):
            return why
        if self._read is None:
            return None
        changed = arm.control != "none" or arm.wording or prompt.chained or prompt.shots
        if changed or arm.selector.kind == "self" or prompt.cine == "video":
            return "not read in this form"
        return None if question.qa_id in self._read else "not read"

    def _displayed(self, question: PlannedQuestion, arm: Arm) -> tuple[AskedQuestion, Template]:
        """Return a question in the words of an arm, and the template that it is asked by."""
        displayed = as_displayed(question, arm)
        if arm.prompt.style == "paper":
            displayed = replace(displayed, checklist=displayed.paper or displayed.checklist)
        style: Style = "standard" if arm.prompt.style == "standard" else "reasoning"
        folders, display = self._templates(displayed.protocol), SHOWN.get(arm.control, "frames")
        return displayed, template_for(displayed, style, folders, display=display)

    def _chain(
        self,
        arm: Arm,
        view: View,
        block: FrameBlock,
        displayed: AskedQuestion,
        ending: str,
        *,
        decoding: tuple[str, ...],
    ) -> tuple[str, Chain | None, int]:
        """Return the text after the frames, the chain in place of one request, the most tokens of replies.

        `decoding` decides the reply to the question besides its prompt: the legal replies, and the rest.
        """
        max_tokens = self._form.max_tokens(displayed, arm.prompt)
        if arm.prompt.chained:
            *before, ending = steps_before(ending, len(view.selection.frames))
            limit = self._form.step_max_tokens(arm.prompt)
            free = (FREE.text, str(limit), *decoding[2:])
            steps = [block.ask(step, limit, *free) for step in before]
            chain = Steps((*steps, block.ask(ending, max_tokens, *decoding)))
            return ending, chain, max_tokens + limit * len(steps)
        if not _is_sampled(displayed, arm):
            return ending, None, max_tokens
        # Keys do not depend on the number of samples, so more of them reuse fewer.
        sampling = arm.model.sampling
        first, temperature = sampling.seed or 0, sampling.temperature or _SAMPLE_TEMPERATURE
        sampled = (*decoding, "sample", str(temperature))
        samples = tuple(
            block.ask(ending, max_tokens, *sampled, str(seed))._replace(seed=seed, temperature=temperature)
            for seed in range(first, first + arm.prompt.samples)
        )
        return ending, Samples(samples), max_tokens

    def _choice(
        self,
        arm: Arm,
        view: View,
        template: Template,
        displayed: AskedQuestion,
        *,
        decoding: tuple[str, ...],
    ) -> tuple[str, Choice, int]:
        """Return what `_chain` does, of a reader that asks for frames of a view before the question."""
        frames, structure, http = view.selection.frames, view.study.structure, self._model.http

        def offer() -> Offer:
            keys = [self._frames.key(view.study, frame) for frame in frames]
            return offer_of(frames, structure, self._level, keys)

        shared = view.study.share(("offer", frames, self._level), offer)
        state = hash_of(template.system, "", shared.key, after=self._state)
        choice = choice_of(
            shared,
            structure,
            displayed,
            template,
            self._form.closing,
            budget=_most_frames(arm),
            max_tokens=self._form.max_tokens(displayed, arm.prompt),
            bound=http is None or http.dialect == "vllm",
            stage_key=request_key(state, "", *decoding),
        )
        longest = f"{choice.further}\n{choice.answer_many}{_LONGEST_NOTE}"
        return longest, choice, max(choice.max_tokens, choice.ask_max_tokens)

    def _largest(self, view: View, n_frames: int) -> View:
        """Return a view of the frames on offer with the most pixels: tokens are counted for them."""
        frames = view.selection.frames
        by_size = sorted(frames, key=lambda frame: -math.prod(self._frames.size(view.study, frame)))
        return replace(view, selection=replace(view.selection, frames=tuple(by_size[:n_frames])))

    def _block(
        self, system: str, view: View, question: PlannedQuestion, arm: Arm, examples: Examples
    ) -> FrameBlock:
        """Return the block that shows a view; requests with the same frames and text share it."""

        def make() -> FrameBlock:
            text = examples.text + view.text(self._level, question.case, gold)
            pictures = [*examples.pictures, *self._frames.pictures(view)]
            state = hash_of(system, text, *(key for key, _ in pictures), after=self._state)
            return FrameBlock(system, text, state, tuple(size for _, size in pictures))

        blank, gold = BLANK in view.selection.flags, arm.prompt.gold
        frames = view.selection.frames, view.as_video, view.captioned, blank
        return view.study.share((system, *frames, question.case, gold, examples), make)

    def _status(self, block: FrameBlock, ending: str, reply_tokens: int) -> tuple[str, int | None]:
        """Return PLANNED or OVERFLOW, and the tokens of the prompt if something counts them."""
        if self._counter is None:
            return PLANNED, None
        with fault_of(self._model.name):
            tokens = self._counter.count(block.system, f"{block.text}{ending}", block.sizes)
        return (OVERFLOW if tokens + reply_tokens > self._model.max_model_len else PLANNED), tokens


def _most_frames(arm: Arm) -> int:
    """Return how many frames a reader may choose under an arm."""
    assert isinstance(arm.budget, int), "a token budget is refused for a reader that chooses its frames"
    return arm.budget


def _is_sampled(question: AskedQuestion, arm: Arm) -> bool:
    """Return whether an arm asks several times; a report has no majority."""
    return arm.prompt.samples > 1 and question.answer_type not in OPEN
