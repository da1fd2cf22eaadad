"""Plan the requests of one model on the studies of one part: every question under every arm."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from cardiolens.base.digest import digest_of
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import Arm
from cardiolens.inference.models.chat import TokenCounter
from cardiolens.inference.models.identity import Identity, readings_of
from cardiolens.inference.models.token_counts import fault_of
from cardiolens.inference.plan.few_shot import Examples, FewShot, flag_of
from cardiolens.inference.plan.frame_views import (
    BLANK,
    SHOWN,
    ArmFrames,
    FrameSelector,
    StudyFrames,
    View,
    arm_frames,
    with_options,
)
from cardiolens.inference.plan.request import (
    PlannedQuestion,
    ReplyForm,
    Request,
    RequestColumns,
    hash_frames,
    hash_model,
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
from cardiolens.protocol.select.selection import Frame
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.protocol.tasks.legal import FREE, constraint_of
from cardiolens.protocol.tasks.questions import LESION, is_twin
from cardiolens.storage.schemas import FRAME, OVERFLOW, PLANNED

if TYPE_CHECKING:
    from hashlib import blake2b

ESTIMATED = "estimated_tokens"  # flag of a request whose tokens are estimated, not counted by a processor
FRAME_REQUESTS = 2  # most requests for frames before the answer of a reader that chooses them
_SAMPLE_TEMPERATURE = 0.7  # of several samples of a model that has none of its own
_LONGEST_NOTE = "x " * 250  # as long as the note to a reader that named frames which do not exist
_NEAR = 0.9  # of a model's limit; above, tokens are counted exactly


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
    """One question under one arm. By default one request asks it after the frames; a chain changes that."""

    question: AskedQuestion  # as displayed
    arm: Arm
    template: Template
    form: ReplyForm
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
        self._arms: dict[ArmFrames, list[tuple[Arm, str]]] = {}  # with their ids, by the frames they show
        for arm in arms:
            self._arms.setdefault(arm_frames(arm), []).append((arm, arm.arm_id))
        self._templates = cache(partial(template_folders, spec.templates))
        self._state = hash_model(identity.model_key, model.sampling)
        self._read = readings_of(model).keys() if model.answers_from == "readings" else None
        lends = any(arm.control == "other_patient" or arm.prompt.shots for arm in arms)
        self._frames = FrameSelector(model, counter, frames_of, lends=lends)
        self._form = ReplyForm(spec, model)
        self._few_shot = FewShot(self._frames, spec.caption, self._form, self._templates)

    def add_study(self, columns: RequestColumns, study_id: str, questions: Sequence[PlannedQuestion]) -> None:
        """Append the requests on one study, question by question."""
        for question in questions:
            for shown_by, arms in self._arms.items():
                own_view = self._frames.own_view(study_id, question, shown_by)
                for arm, arm_id in arms:
                    if (arm.control == LESION) == is_twin(study_id):
                        self._add(columns, question, arm, arm_id, own_view)

    def _add(
        self, columns: RequestColumns, question: PlannedQuestion, arm: Arm, arm_id: str, own_view: View
    ) -> None:
        """Append the request of one question under one arm, with its chain and examples if it is sent."""
        view = self._frames.view(question, arm, own_view)
        examples = self._few_shot.before(question, arm, arm_id)
        if view.selection.skipped is None and (why := self._why_skipped(question, arm, view, examples)):
            view = view.skipped(why)
        selection, chooses = view.selection, arm.selector.kind == "self" and view.selection.skipped is None
        draft = self._chained(self._draft(question, arm, arm_id, view, examples), view)
        status, tokens = f"skipped: {selection.skipped}", None
        if selection.skipped is None:
            status, tokens = self._status(draft.block, draft.ending, draft.reply_tokens)
        sent = status == PLANNED
        declared = draft.declared if sent or chooses else ()
        n_videos = count_videos(draft.block.text) if view.as_video else 0
        displayed = draft.question
        request = Request(
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
                *([flag_of(examples.shown)] if examples.shown else []),
                *([f"{VIDEO_FLAG}{n_videos}"] if n_videos else []),
            ),
            status=status,
            predicted_tokens=tokens,
            request_key=request_key(draft.block.state, draft.ending, *draft.decoding, *declared),
        )
        columns.add(request, draft.chain if sent else None, examples.shown if sent else ())

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
    ) -> Draft:
        """Return a question in the words and form of an arm, after the frames of a view."""
        prompt, form = arm.prompt, self._form
        displayed = with_options(question.worded(arm.wording), arm.control, question.qa_id)
        if prompt.style == "paper":
            displayed = with_points_of_paper(displayed)
        style: Style = "standard" if prompt.style == "standard" else "reasoning"
        display = SHOWN.get(arm.control, "frames")
        template = template_for(displayed, style, self._templates(displayed.protocol), display=display)
        n_frames = len(view.frames)
        if arm.selector.kind == "self" and view.selection.skipped is None:
            largest = replace(view.selection, frames=self._largest(view, arm))
            n_frames, view = len(view.captioned), replace(view, selection=largest)
        options = displayed.answer_type, displayed.keys, displayed.exclusive
        legal = constraint_of(form.format_of(displayed, prompt), *options).text
        # Arms share equal requests, but for readers that look at the truth or sample without a seed.
        shares = self._model.determined or _is_sampled(displayed.answer_type, arm)
        own = () if shares and not self._model.told_questions else (arm_id, question.qa_id)
        replicate = str(int(arm.control == "repeat"))
        max_tokens = form.max_tokens(displayed, prompt)
        block = self._block(template.system, view, question, arm, examples)
        ending = question_block(displayed, n_frames, template, form.closing)
        return Draft(
            question=displayed,
            arm=arm,
            template=template,
            form=form,
            block=block,
            max_tokens=max_tokens,
            decoding=(legal, str(max_tokens), replicate, *own),
            ending=ending,
            prompt=f"{block.text}{ending}",
            reply_tokens=max_tokens,
        )

    def _largest(self, view: View, arm: Arm) -> tuple[Frame, ...]:
        """Return the frames that a reader may choose with the most pixels: tokens are counted for them."""

        def pixels(frame: Frame) -> int:
            height, width = self._frames.size(view.study, frame)
            return height * width

        assert isinstance(arm.budget, int), "a token budget is refused for a reader that chooses its frames"
        return tuple(sorted(view.selection.frames, key=pixels, reverse=True)[: arm.budget])

    def _chained(self, draft: Draft, view: View) -> Draft:
        """Return a draft with the chain that its arm asks in place of one request, if it does."""
        arm = draft.arm
        if arm.selector.kind == "self" and view.selection.skipped is None:
            return self._choosing(draft, view)
        if arm.prompt.chained:
            return _in_steps(draft, len(view.selection.frames))
        return _sampled(draft) if _is_sampled(draft.question.answer_type, arm) else draft

    def _choosing(self, draft: Draft, view: View) -> Draft:
        """Return a draft that asks for frames of a view by name, before the question."""
        arm, http = draft.arm, self._model.http
        assert isinstance(arm.budget, int), "a token budget is refused for a reader that chooses its frames"
        listing = listed(view.selection.frames, view.study.structure)
        limits = arm.budget, FRAME_REQUESTS
        words = asking(listing, draft.question, draft.template, draft.form.closing, limits)
        offer = self._offered(view)
        state = hash_frames(self._state, draft.block.system, "", (offer.key,))
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
        return replace(
            draft,
            ending=f"{words.further}\n{words.answer_many}{_LONGEST_NOTE}",
            prompt=choice.opening,
            reply_tokens=max(draft.max_tokens, choice.ask_max_tokens),
            chain=choice,
            n_before=choice.rounds,
            declared=(choice.stage_key, *words, *map(str, (choice.budget, choice.rounds, choice.bound))),
        )

    def _offered(self, view: View) -> Offer:
        """Return the offer of a view's frames, which questions on the study share."""
        selected = view.selection.frames
        key = "offer", selected, self._level
        if key not in view.study.shown:
            offer = offered(selected, view.study.structure, self._level)
            pictures = [self._frames.key(view.study, frame) for frame in selected]
            view.study.shown[key] = Offer(digest_of([list(map(list, offer)), pictures]), offer)
        shared = view.study.shown[key]
        assert isinstance(shared, Offer)
        return shared

    def _block(
        self, system: str, view: View, question: PlannedQuestion, arm: Arm, examples: Examples
    ) -> FrameBlock:
        """Return the block that shows a view; requests with the same frames and text share it."""
        frames, blank, gold = view.selection.frames, BLANK in view.selection.flags, arm.prompt.gold
        key = system, frames, view.as_video, view.captioned, blank, question.case, gold, examples
        block = view.study.shown.get(key)
        if block is None:
            text = examples.text + view.text(self._level, question.case, gold)
            pictures = [*examples.pictures, *self._frames.pictures(view)]
            state = hash_frames(self._state, system, text, tuple(key for key, _ in pictures))
            block = FrameBlock(system, text, state, tuple(size for _, size in pictures))
            before, separator, _ = text.rpartition(FRAME)
            if self._counter is not None and separator:
                with fault_of(self._model.name):
                    counted = self._counter.count_shown(system, before, block.sizes)
                block = replace(block, counted=counted)
            view.study.shown[key] = block
        assert isinstance(block, FrameBlock)
        return block

    def _status(self, block: FrameBlock, ending: str, reply_tokens: int) -> tuple[str, int | None]:
        """Return PLANNED or OVERFLOW, and the tokens of the prompt if something counts them."""
        if self._counter is None:
            return PLANNED, None
        limit, tokens = self._model.max_model_len, None
        with fault_of(self._model.name):
            if block.counted is not None:
                before, tail = block.counted
                rest = block.text.rpartition(FRAME)[2]
                tokens = before + self._counter.count_asked(f"{rest}{ending}", tail)
            if tokens is None or tokens + reply_tokens > _NEAR * limit:
                tokens = self._counter.count(block.system, f"{block.text}{ending}", block.sizes)
        return (OVERFLOW if tokens + reply_tokens > limit else PLANNED), tokens


def _is_sampled(answer_type: str, arm: Arm) -> bool:
    """Return whether an arm asks several times; a report has no majority."""
    return arm.prompt.samples > 1 and answer_type not in OPEN


def _in_steps(draft: Draft, n_images: int) -> Draft:
    """Return a draft that asks for free text about the frames, which the prompt of the answer repeats."""
    prompt, text = draft.arm.prompt, draft.block.text
    *before, ending = steps_before(draft.ending, n_images)
    limit, (_, _, *decoding) = draft.form.step_max_tokens(prompt), draft.decoding
    key = partial(request_key, draft.block.state)
    steps = [Stage(f"{text}{step}", limit, key(step, FREE.text, str(limit), *decoding)) for step in before]
    stages = (*steps, Stage(f"{text}{ending}", draft.max_tokens, key(ending, *draft.decoding)))
    return replace(
        draft,
        ending=ending,
        prompt=stages[-1].prompt,
        reply_tokens=draft.max_tokens + len(steps) * limit,
        chain=Steps(stages),
        n_before=len(steps),
        declared=tuple(stage.key for stage in stages),
    )


def _sampled(draft: Draft) -> Draft:
    """Return a draft of several replies; keys do not depend on their number, so more samples reuse fewer."""
    prompt, sampling = draft.arm.prompt, draft.arm.model.sampling
    first, temperature = sampling.seed or 0, sampling.temperature or _SAMPLE_TEMPERATURE
    key = partial(request_key, draft.block.state, draft.ending, *draft.decoding, "sample")
    stages = tuple(
        Stage(
            draft.prompt,
            draft.max_tokens,
            key(str(temperature), str(seed)),
            seed,
            temperature,
        )
        for seed in range(first, first + prompt.samples)
    )
    keys = tuple(stage.key for stage in stages)
    return replace(draft, chain=Samples(stages), n_before=prompt.samples - 1, declared=keys)
