"""Plan the requests of one model on the studies of one part: every question under every arm."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from cardiolens.base.digest import digest_of
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
from cardiolens.protocol.prompts.frame_request_prompt import asking, listed, offered
from cardiolens.protocol.prompts.frames import FLAG as VIDEO_FLAG
from cardiolens.protocol.prompts.frames import count_videos
from cardiolens.protocol.prompts.question import AskedQuestion, with_points_of_paper
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
FRAME_REQUESTS = 2  # most requests for frames before the answer of a reader that chooses them
_SAMPLE_TEMPERATURE = 0.7  # of several samples of a model that has none of its own
_LONGEST_NOTE = "x " * 250  # as long as the note to a reader that named frames which do not exist


class FrameBlock(NamedTuple):
    """The part of a prompt that all requests with the same list of frames share."""

    system: str
    text: str
    state: "blake2b"  # hash of the request key, up to the question
    sizes: tuple[tuple[int, int], ...]  # (height, width) of the frames as rendered


@dataclass(frozen=True, slots=True)
class _Draft:
    """One question under one arm. By default one request asks it after the frames; a chain changes that."""

    question: AskedQuestion  # as displayed
    template: Template
    block: FrameBlock
    max_tokens: int  # of the answer
    decoding: tuple[str, ...]  # what decides the reply besides the prompt; its first entry: legal replies
    ending: str  # the text after the frames, at its longest
    prompt: str  # the user message of the request's row
    reply_tokens: int  # of all replies that share a prompt
    chain: Chain | None = None  # asked in place of the one request
    n_before: int = 0  # requests besides the one whose row is planned
    declared: tuple[str, ...] = ()  # parts of a chain that decide its last reply, for the request key


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
        draft = self._draft(question, arm, arm_id, view, examples)
        if chooses:
            draft = self._choosing(draft, arm, view)
        elif arm.prompt.chained:
            draft = self._in_steps(draft, arm, len(selection.frames))
        elif _is_sampled(draft.question, arm):
            draft = _sampled(draft, arm)
        status, tokens = f"skipped: {selection.skipped}", None
        if selection.skipped is None:
            status, tokens = self._status(draft)
        sent = status == PLANNED
        declared = draft.declared if sent or chooses else ()
        n_videos = count_videos(draft.block.text) if view.as_video else 0
        displayed = draft.question
        return Request(
            arm_id=arm_id,
            qa_id=question.qa_id,
            study_id=question.study_id,
            frames_study_id=view.study_id,
            subtask=displayed.subtask,
            frames=() if chooses else selection.frames,
            system=draft.block.system,
            prompt=draft.prompt,
            template=draft.template.name,
            answer_format=self._form.format_of(displayed, arm.prompt),
            answer_type=displayed.answer_type,
            option_keys=displayed.keys,
            exclusive=displayed.exclusive,
            max_tokens=draft.max_tokens,
            stage=draft.n_before,
            replicate=int(arm.control == "repeat"),
            flags=(
                *selection.flags,
                *([ESTIMATED] if self._model.estimates_tokens else []),
                *([f"{SHOTS_FLAG}{len(examples.shown)}"] if examples.shown else []),
                *([f"{VIDEO_FLAG}{n_videos}"] if n_videos else []),
            ),
            status=status,
            predicted_tokens=tokens,
            request_key=request_key(draft.block.state, draft.ending, *draft.decoding, *declared),
            chain=draft.chain if sent else None,
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

    def _draft(
        self, question: PlannedQuestion, arm: Arm, arm_id: str, view: View, examples: Examples
    ) -> _Draft:
        """Return a question in the words and form of an arm, after the frames of a view."""
        prompt, form = arm.prompt, self._form
        displayed = as_displayed(question, arm)
        if prompt.style == "paper":
            displayed = with_points_of_paper(displayed)
        style: Style = "standard" if prompt.style == "standard" else "reasoning"
        display = SHOWN.get(arm.control, "frames")
        template = template_for(displayed, style, self._templates(displayed.protocol), display=display)
        n_frames = len(view.frames)
        if arm.selector.kind == "self" and view.selection.skipped is None:
            n_frames, view = len(view.captioned), self._largest(view, _most_frames(arm))
        options = displayed.answer_type, displayed.keys, displayed.exclusive
        legal = constraint_of(form.format_of(displayed, prompt), *options).text
        # Arms share equal requests, but for readers that look at the truth or sample without a seed.
        shares = self._model.determined or _is_sampled(displayed, arm)
        own = () if shares and not self._model.told_questions else (arm_id, question.qa_id)
        max_tokens = form.max_tokens(displayed, prompt)
        block = self._block(template.system, view, question, arm, examples)
        ending = question_block(displayed, n_frames, template, form.closing)
        return _Draft(
            question=displayed,
            template=template,
            block=block,
            max_tokens=max_tokens,
            decoding=(legal, str(max_tokens), str(int(arm.control == "repeat")), *own),
            ending=ending,
            prompt=f"{block.text}{ending}",
            reply_tokens=max_tokens,
        )

    def _largest(self, view: View, n_frames: int) -> View:
        """Return a view of the frames on offer with the most pixels: tokens are counted for them."""
        frames = view.selection.frames
        by_size = sorted(frames, key=lambda frame: -math.prod(self._frames.size(view.study, frame)))
        return replace(view, selection=replace(view.selection, frames=tuple(by_size[:n_frames])))

    def _choosing(self, draft: _Draft, arm: Arm, view: View) -> _Draft:
        """Return a draft that asks for frames of a view by name, before the question."""
        http, budget = self._model.http, _most_frames(arm)
        listing = listed(view.selection.frames, view.study.structure)
        limits = budget, FRAME_REQUESTS
        words = asking(listing, draft.question, draft.template, self._form.closing, limits)
        offer = view.study.share(("offer", view.selection.frames, self._level), lambda: self._offer(view))
        state = hash_of(draft.block.system, "", offer.key, after=self._state)
        choice = Choice(
            offer=offer,
            budget=budget,
            rounds=FRAME_REQUESTS,
            **words._asdict(),
            ask_max_tokens=64 + 24 * budget,  # a name has about 16 tokens
            max_tokens=draft.max_tokens,
            bound=http is None or http.dialect == "vllm",
            stage_key=request_key(state, "", *draft.decoding),
        )
        return replace(
            draft,
            ending=f"{words.further}\n{words.answer_many}{_LONGEST_NOTE}",
            prompt=choice.opening,
            reply_tokens=max(draft.max_tokens, choice.ask_max_tokens),
            chain=choice,
            n_before=choice.rounds,
            declared=(choice.stage_key, *words, *map(str, (choice.budget, choice.rounds, choice.bound))),
        )

    def _offer(self, view: View) -> Offer:
        """Return the frames of a view as a reader may request them."""
        frames = offered(view.selection.frames, view.study.structure, self._level)
        keys = [self._frames.key(view.study, frame) for frame in view.selection.frames]
        return Offer(digest_of([list(map(list, frames)), keys]), frames)

    def _in_steps(self, draft: _Draft, arm: Arm, n_images: int) -> _Draft:
        """Return a draft that asks for free text about the frames, which the prompt of the answer repeats."""
        text, limit = draft.block.text, self._form.step_max_tokens(arm.prompt)
        *before, ending = steps_before(draft.ending, n_images)
        _, _, *decoding = draft.decoding
        key = partial(request_key, draft.block.state)
        steps = [
            Stage(f"{text}{step}", limit, key(step, FREE.text, str(limit), *decoding)) for step in before
        ]
        stages = (*steps, Stage(f"{text}{ending}", draft.max_tokens, key(ending, *draft.decoding)))
        return replace(
            draft,
            ending=ending,
            prompt=stages[-1].prompt,
            reply_tokens=sum(stage.max_tokens for stage in stages),
            chain=Steps(stages),
            n_before=len(steps),
            declared=tuple(stage.key for stage in stages),
        )

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

    def _status(self, draft: _Draft) -> tuple[str, int | None]:
        """Return PLANNED or OVERFLOW, and the tokens of the prompt if something counts them."""
        if self._counter is None:
            return PLANNED, None
        block = draft.block
        with fault_of(self._model.name):
            tokens = self._counter.count(block.system, f"{block.text}{draft.ending}", block.sizes)
        return (OVERFLOW if tokens + draft.reply_tokens > self._model.max_model_len else PLANNED), tokens


def _most_frames(arm: Arm) -> int:
    """Return how many frames a reader may choose under an arm."""
    assert isinstance(arm.budget, int), "a token budget is refused for a reader that chooses its frames"
    return arm.budget


def _is_sampled(question: AskedQuestion, arm: Arm) -> bool:
    """Return whether an arm asks several times; a report has no majority."""
    return arm.prompt.samples > 1 and question.answer_type not in OPEN


def _sampled(draft: _Draft, arm: Arm) -> _Draft:
    """Return a draft of several replies; keys do not depend on their number, so more samples reuse fewer."""
    n_samples, sampling = arm.prompt.samples, arm.model.sampling
    first, temperature = sampling.seed or 0, sampling.temperature or _SAMPLE_TEMPERATURE
    key = partial(request_key, draft.block.state, draft.ending, *draft.decoding, "sample", str(temperature))
    stages = tuple(
        Stage(draft.prompt, draft.max_tokens, key(str(seed)), seed, temperature)
        for seed in range(first, first + n_samples)
    )
    declared = tuple(stage.key for stage in stages)
    return replace(draft, chain=Samples(stages), n_before=n_samples - 1, declared=declared)
